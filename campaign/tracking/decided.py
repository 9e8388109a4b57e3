"""What the mirror reads of a ledger, so that it needs no particular store behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from campaign.records import Decision, Evidence, Found, Plan, Study, StudyEvidence


class Decided(Protocol):
    """A ledger that can be read; `campaign.ledger.Ledger` is one."""

    @property
    def folder(self) -> Path:
        """`runs/<campaign>`."""

    def decisions(self) -> Sequence[Decision]:
        """Every decision, with its sequence number."""

    def decision_rows(self) -> Sequence[Mapping[str, Any]]:
        """The same as JSON values, with `revoked`, `ruling` and `ruled_why`."""

    def stack_rows(self) -> Sequence[Mapping[str, Any]]:
        """The decisions that make up the stack, in the order in which each last joined it."""

    def findings(self) -> Sequence[Found]:
        """Every finding, with its sequence number."""

    def profile_rows(self) -> Sequence[Mapping[str, Any]]:
        """Profiles and recorded diagnoses as JSON values, with their `kind`, `id`, `time` and `sequence`."""

    def plans(self) -> Sequence[Plan]:
        """Every registered plan."""

    def studies(self) -> Sequence[Study]:
        """Every declared study."""

    def evidence(self, plan_id: str) -> Evidence:
        """The plan, the probe and every round with its blocks."""

    def study_evidence(self, study_id: str) -> StudyEvidence:
        """The study and every round with its blocks."""

    def path(self, relative: str) -> Path:
        """A file beside the ledger."""


@dataclass(frozen=True)
class Standing:
    """What became of a decision since: taken back, or ruled on by a person (`ruling` accept or reject, and why)."""

    revoked: bool = False
    ruling: str = ""
    why: str = ""


AS_DECIDED = Standing()


def standings(ledger: Decided) -> dict[str, Standing]:
    """The standing of every decision, by its id."""
    return {row["id"]: Standing(row["revoked"], row["ruling"], row["ruled_why"]) for row in ledger.decision_rows()}
