"""This machine cannot run an arm: the verdict is unavailable, with the arm's own reason and remedy, never a guess
(DESIGN 2)."""

from __future__ import annotations

from campaign.records import UNAVAILABLE, ArmProbe, Trial, Verdict
from campaign.verdicts._case import Case

ORDER = 10


def rule(case: Case) -> Verdict | None:
    looks: list[ArmProbe | Trial] = list(case.evidence.probe.arms) if case.evidence.probe else []
    looks += [trial for one in case.evidence.rounds for trial in one.trials]
    for found in looks:
        if found.status == "unavailable":
            return case.verdict(
                UNAVAILABLE,
                "unavailable",
                f"{found.arm} cannot run on this machine: {found.message or 'it gave no reason'}",
                found.remedy or f"read {found.log or 'the log'}",
            )
    return None
