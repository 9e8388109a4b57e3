"""Decisions and findings computed again from their own evidence, and where they differ from what is recorded.

A verdict is a pure function of recorded evidence, and so is a finding: each must come out of its samples again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from campaign.records import Decision, Evidence, Found, Need, Plan, StudyEvidence, to_json
from campaign.report.describe import describe_engagement, describe_low_precision, describe_parity

TOLERANCE = 1e-9  # relative, for numbers: another machine's exp and log may differ in the last bit
# Words about a verdict or a finding, which another campaign may say otherwise. The rest is compared, and the sentence
# in its own way.
WORDS = frozenset({"sentence", "remedy", "warnings"})
NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What a decision repeats of its plan, and a finding of its study.
OF_PLAN = ("workload", "device", "stack", "attempt", "machine_line", "command")
OF_STUDY = ("workload", "device", "stack", "machine_line", "command")

Difference = tuple[str, Any, Any]


def differences(
    decision: Decision, evidence: Evidence, head: Sequence[str] | None = None, *, same_words: bool = True
) -> Iterator[Difference]:
    """(field, recorded, recomputed) wherever the decision is not what its evidence gives. `head` are the names in the
    stack at the decision's line, where the stack had moved since its plan was registered: the decision must be stale.
    With `same_words` its sentence is the recomputed one to the letter; without, as another campaign wrote it, it names
    no number that the recomputed one lacks.
    """
    from campaign.verdicts import judge, stale

    yield from _against_plan(decision, evidence.plan)
    answer = judge(evidence)
    if isinstance(answer, Need):
        yield "verdict", decision.verdict.verdict, f"not decided: needs {answer.rounds} valid {answer.stage} rounds"
        return
    if head is not None:
        answer = stale(answer, evidence.plan, head)
    yield from _apart("verdict", _said(decision.verdict), _said(answer))
    yield from _worded("verdict.sentence", decision.verdict.sentence, answer.sentence, same_words)
    for name, again in (
        ("wall_seconds", sum((one.wall_seconds for one in evidence.rounds), _probe_seconds(evidence))),
        ("timed_seconds", sum((one.timed_seconds for one in evidence.rounds), 0.0)),
    ):
        yield from _apart(name, getattr(decision, name), again)
    yield from _apart("parity", decision.parity, describe_parity(evidence))
    yield from _apart("engagement", decision.engagement, describe_engagement(evidence))
    yield from _apart("low_precision", decision.low_precision, describe_low_precision(evidence))


def finding_differences(found: Found, evidence: StudyEvidence, *, same_words: bool = True) -> Iterator[Difference]:
    """The same of a finding and its study's evidence."""
    from campaign.interactions import find

    for name in OF_STUDY:
        yield from _apart(name, to_json(getattr(found, name)), to_json(getattr(evidence.study, name)))
    answer = find(evidence)
    if isinstance(answer, Need):
        yield "finding", found.finding.kind, f"not found: needs {answer.rounds} valid rounds of {answer.stage}"
        return
    yield from _apart("finding", _said(found.finding), _said(answer))
    yield from _worded("finding.sentence", found.finding.sentence, answer.sentence, same_words)
    for name in ("wall_seconds", "timed_seconds"):
        yield from _apart(name, getattr(found, name), sum(getattr(one, name) for one in evidence.rounds))


def _probe_seconds(evidence: Evidence) -> float:
    return evidence.probe.wall_seconds if evidence.probe else 0.0


def _said(record: Any) -> dict[str, Any]:
    return {name: value for name, value in to_json(record).items() if name not in WORDS}


def _worded(path: str, recorded: str, again: str, same_words: bool) -> Iterator[Difference]:
    if recorded != again and (same_words or not set(NUMBER.findall(recorded)) <= set(NUMBER.findall(again))):
        yield path, recorded, again


def _against_plan(decision: Decision, plan: Plan) -> Iterator[tuple[str, Any, Any]]:
    for name in OF_PLAN:
        yield from _apart(name, to_json(getattr(decision, name)), to_json(getattr(plan, name)))
    claim = plan.hypothesis
    yield from _apart("hypothesis", decision.hypothesis, claim.name)
    yield from _apart("claim", decision.claim, claim.claim)
    yield from _apart("predicted_ratio", decision.predicted_ratio, claim.predicted_ratio)
    yield from _apart("overrides", list(decision.overrides), list(claim.edit.overrides))


def _apart(path: str, recorded: Any, again: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves at which two JSON values differ, floats by more than `TOLERANCE`."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        for key in (*recorded, *(key for key in again if key not in recorded)):
            yield from _apart(f"{path}.{key}", recorded.get(key), again.get(key))
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        for index, (left, right) in enumerate(zip(recorded, again, strict=True)):
            yield from _apart(f"{path}[{index}]", left, right)
    elif _is_number(recorded) and _is_number(again):
        if not math.isclose(recorded, again, rel_tol=TOLERANCE, abs_tol=0.0):
            yield path, recorded, again
    elif recorded != again or type(recorded) is not type(again):
        yield path, recorded, again


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
