"""Cheats that only torch shows: the operators that an untimed probe counts."""

from __future__ import annotations

import os

import pytest

CHAIN = ("workload=chain", "hypothesis=fused_chain")


def edit(*overrides):
    return f"hypothesis.edit.overrides={list(overrides)}"


def test_a_step_that_is_honest_only_while_operators_are_counted_breaks_parity(decide):
    found = decide(*CHAIN, edit("workload.cheat=unwatched"))
    assert (found.verdict, found.reason) == ("invalid", "parity")


def test_a_sleep_that_only_control_has_is_no_engaged_edit(decide):
    found = decide(*CHAIN, edit("workload.pause=0.0"), "workload.pause=0.01")
    assert (found.verdict, found.reason) == ("invalid", "not_engaged")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="with one core a pinned process is like a free one")
def test_a_step_that_is_left_out_while_its_memory_is_measured_is_told(decide):
    found = decide(*CHAIN, edit("workload.cheat=light"), "hypothesis.predicted_evidence=[]", "protocol.pairs=2")
    assert found.verdict == "invalid"
    assert found.reason in ("restarted", "last_step"), "the steps after a restart are told by their loss"
