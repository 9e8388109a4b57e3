"""The predicted evidence of a hypothesis: which counters there are, and which counts it predicts for this workload."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from campaign.config.schema import number, one_of
from campaign.errors import BadInput, UnknownName
from campaign.records import ExpectedChange
from campaign.records.plan import CHANGES

OTHER = "other"
DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float4_e2m1fn_x2",
    "int8",
    "uint8",
)
FIELDS = (
    "registers",
    "stack_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "spill_instructions",
    "shared_bytes",
    "threads",
)
OPERATOR = re.compile(r"op:\S+")
KERNEL = re.compile(r"kernel:\S.*")
STATIC = re.compile(r"static:([^:\s]+):([^:\s]+)")
RULE = "must be op:NAME, kernel:NAME, gemm:DTYPE, compile:graphs or static:KERNEL:FIELD"


def here(value: Any, workload: str, key: str, known: Sequence[str]) -> Any:
    """`value`, or of a mapping from workloads to values the one of `workload` (else that of `other`, else None).

    Raises UnknownName for a name in the mapping that is no workload.
    """
    if not isinstance(value, dict):
        return value
    for name in value:
        if name not in (*known, OTHER):
            raise UnknownName(f"workload in {key}", str(name), [*known, OTHER], remedy=f"{key}=VALUE")
    return value.get(workload, value.get(OTHER))


def counts_here(evidence: Any, workload: str, known: Sequence[str]) -> Any:
    """`predicted_evidence` with each count as predicted for this workload."""
    if not isinstance(evidence, list | tuple):
        return evidence
    found = []
    for index, entry in enumerate(evidence):
        if isinstance(entry, dict):
            key = f"hypothesis.predicted_evidence[{index}]"
            sides = {side: entry[side] for side in ("control", "treatment") if side in entry}
            entry = entry | {side: here(value, workload, f"{key}.{side}", known) for side, value in sides.items()}
        found.append(entry)
    return found


def check_evidence(evidence: Sequence[ExpectedChange]) -> None:
    """Raises BadInput or UnknownName for a change, a counter or a count that no probe could show."""
    for index, expected in enumerate(evidence):
        key = f"hypothesis.predicted_evidence[{index}]"
        one_of(expected.change, f"{key}.change", CHANGES)
        check_counter(expected.counter, f"{key}.counter")
        for side in ("control", "treatment"):
            count = getattr(expected, side)
            if count is not None:
                number(count, f"{key}.{side}", "a count per step, 0 or more", count >= 0)


def check_counter(counter: str, key: str) -> None:
    """Raises BadInput for a counter of no kind that is counted, UnknownName for a dtype or a field that is not."""
    kind, _, name = counter.partition(":")
    if kind == "gemm" and name:
        _known("dtype", name, DTYPES, key, counter)
    elif kind == "compile" and name:
        _known("counter of compilations", name, ("graphs",), key, counter)
    elif found := STATIC.fullmatch(counter):
        _known("field of static evidence", found[2], FIELDS, key, counter)
    elif not (OPERATOR.fullmatch(counter) or KERNEL.fullmatch(counter)):
        raise BadInput(f"{key} = {counter!r}: {RULE}", remedy="counter: op:aten::rsqrt")


def _known(kind: str, name: str, known: Sequence[str], key: str, counter: str) -> None:
    if name not in known:
        raise UnknownName(f"{kind} (in {key} = {counter})", name, known, remedy=f"{RULE.removeprefix('must be ')}")
