"""The same mechanisms done right go through the same gates: no gate refuses everything."""

from __future__ import annotations

import pytest

TWINS = {
    "weights rounded once and dropped by the optimizer": (
        ["workload.weights=cached"],
        ["workload.bits=4", "hypothesis.parity.kind=bitwise"],
    ),
    "hidden values that are kept instead of recomputed": (
        ["workload.checkpoint=false"],
        ["hypothesis.parity.kind=bitwise"],
    ),
    "a lower precision that says so": (
        ["workload.number=float32"],
        ["workload.number=float64", "hypothesis.parity.kind=rounding"],
    ),
    "a thread that is waited for in the step": (["workload.cheat=joined"], ["hypothesis.parity.kind=bitwise"]),
    "a step that synchronize waits for": (["workload.cheat=synchronized"], ["hypothesis.parity.kind=bitwise"]),
}


@pytest.mark.parametrize("twin", TWINS)
def test_an_honest_edit_passes_every_gate_and_is_judged_by_its_speed(decide, twin):
    overrides, control = TWINS[twin]
    # One look without confirmation. Blocks of the usual length: beside 1 ms a thread's own waking is no small part.
    quick = ("protocol.decisive=false", "protocol.block_minimum_seconds=0.02")
    found = decide(f"hypothesis.edit.overrides={overrides}", *control, *quick)
    assert found.reason in ("promising", "not_promising"), found.sentence
