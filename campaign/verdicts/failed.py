"""A probe or a trial that crashed, ran out of memory, was killed, hung or spoke nonsense makes the result invalid at
once, with the failure as its reason (DESIGN 5, "invalid"). It is not repeated: what failed once must be read first.
An interrupted trial is no failure; its round is invalid and replaced."""

from __future__ import annotations

from campaign.records import INVALID, TRIAL_FAILURES, ArmProbe, Trial, Verdict
from campaign.verdicts._case import Case

ORDER = 20
FAILURES = tuple(status for status in TRIAL_FAILURES if status not in ("unavailable", "interrupted"))


def rule(case: Case) -> Verdict | None:
    probes = case.evidence.probe.arms if case.evidence.probe else ()
    runs: list[tuple[str, ArmProbe | Trial]] = [("the probe of", probe) for probe in probes]
    runs += [(f"round {one.id}:", trial) for one in case.evidence.rounds for trial in one.trials]
    for where, found in runs:
        if found.status in FAILURES:
            return case.verdict(
                INVALID,
                found.status,
                f"{where} {found.arm} ended as {found.status}: {found.message or 'no message'}"
                f" (log: {found.log or 'none'})",
                found.remedy or f"read {found.log or 'the log'}, mend the cause, then: {case.plan.command}",
            )
    return None
