"""Same fingerprint and same code, or no comparison: a stored or altered baseline is history, never control (DESIGN 5;
the same code differed by up to 5 % on another day or machine). Invalid at once, since a replacement round would not be
comparable either."""

from __future__ import annotations

from campaign.records import INVALID, Verdict
from campaign.stability import FATAL_FAULTS
from campaign.verdicts._case import Case

ORDER = 30


def rule(case: Case) -> Verdict | None:
    for _, faults in case.sorted.invalid():
        for fault in faults:
            if fault.code in FATAL_FAULTS:
                return case.verdict(INVALID, fault.code, fault.sentence, fault.remedy)
    return None
