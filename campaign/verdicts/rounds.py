"""A look takes the rounds that it was registered with, no fewer: no other peeking (DESIGN 5, declared stopping)."""

from __future__ import annotations

from campaign.records import Need
from campaign.verdicts._case import Case

ORDER = 70


def rule(case: Case) -> Need | None:
    return None if case.screened else Need("screen", case.wanted)
