"""What the mirror reads of a ledger, so that it needs no particular store behind it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from campaign.records import Decision, Evidence, Plan


class Decided(Protocol):
    """A ledger that can be read; `campaign.ledger.Ledger` is one."""

    @property
    def folder(self) -> Path:
        """`runs/<campaign>`."""

    def decisions(self) -> Sequence[Decision]:
        """Every decision, with its sequence number."""

    def plans(self) -> Sequence[Plan]:
        """Every registered plan."""

    def revoked(self) -> Collection[str]:
        """The ids of decisions that were taken back."""

    def evidence(self, plan_id: str) -> Evidence:
        """The plan, the probe and every round with its blocks."""

    def path(self, relative: str) -> Path:
        """A file beside the ledger."""
