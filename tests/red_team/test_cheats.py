"""Every cheat goes through the main job with real processes, and none is accepted: each for the reason that fits it.

What no gate here can stop, and why:

- Results computed ahead, during warm-up, and told one by one (`rewound`). The data are known from the start, so every
  step, and the first one again after a restart, says what an honest one says. Only `suspect` marks it. It would take
  data that the workload cannot know before its clock runs, such as a seed that the harness draws after warm-up.
- An edit that ends a handicap: work that control does in vain. Nothing is computed otherwise and nothing runs where no
  clock looks; control is really slower. As waiting it is contention, and where an operator was predicted it is not
  engaged; as busy work with no prediction it takes a reader of the diff.
- A small part left out after the probe by an edit that is allowed to round (`rare_bias`: one bias's gradient every
  second step). Two honest trainings that round differently drift apart by more than that, so no limit on the loss can
  be that tight. It would take the gradients of a late step, computed again by the reference arm from the same
  parameters.
- A predicted operator that is dispatched for show, and only while somebody counts.
- A step that is right, and lean but slow, only while its memory is measured: those steps come after a restart,
  untimed, and a workload can know them.
"""

from __future__ import annotations

import os

import pytest

QUANTIZED = ("workload.bits=4",)
CACHED = (*QUANTIZED, "workload.weights=cached")

# The edit, what control is, the claim it is declared with, and the gate that must stop it.
WRONG_FROM_THE_START = [
    ("stale_weights", CACHED, "precision"),
    ("stale_activations", QUANTIZED, "precision"),
    ("dropped_gradient", QUANTIZED, "precision"),
    ("dropped_bias", ("workload.bits=2",), "precision"),
    ("half_batch", QUANTIZED, "precision"),
    ("other_batch", (), "rounding"),
    ("skipped_update", (), "rounding"),
    ("slower_schedule", (), "rounding"),
    ("replayed", (), "rounding"),
    ("unrecomputed", QUANTIZED, "precision"),
]
WRONG_LATER = ["skipped_block", "old_gradient", "replayed_late", "epoch_cache", "skipped_when_timed"]
ELSEWHERE = [
    "threaded",
    "early",
    "owed_step",
    "paid_before_the_clock",
    "paid_by_the_collector",
    "forked",
    "orphaned",
    "disturbing",
]


def edit(*overrides):
    return f"hypothesis.edit.overrides={list(overrides)}"


def cheat(name):
    return edit(f"workload.cheat={name}")


@pytest.mark.parametrize(("name", "control", "claim"), WRONG_FROM_THE_START)
def test_a_step_that_computes_something_else_breaks_parity_under_any_claim(decide, name, control, claim):
    found = decide(cheat(name), *control, f"hypothesis.parity.kind={claim}")
    assert (found.verdict, found.reason) == ("invalid", "parity")


def test_a_lower_precision_declared_as_bitwise_breaks_parity(decide):
    found = decide(edit("workload.number=float32"), "workload.number=float64")
    assert (found.verdict, found.reason) == ("invalid", "parity")


@pytest.mark.parametrize("name", WRONG_LATER)
def test_a_step_that_goes_wrong_after_the_probe_is_told_by_the_last_timed_ones(decide, name):
    if name == "skipped_when_timed" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("with one core a pinned process cannot be told from a free one")
    found = decide(cheat(name), *QUANTIZED, "hypothesis.parity.kind=precision", "protocol.pairs=20")
    assert (found.verdict, found.reason) == ("invalid", "last_step")


def test_a_part_that_is_no_longer_trained_after_the_probe_is_told_however_little_the_loss_moves(decide):
    found = decide(cheat("frozen_late"), *QUANTIZED, "hypothesis.parity.kind=precision")
    assert (found.verdict, found.reason) == ("invalid", "last_step")


def test_results_kept_from_before_are_told_by_a_restart(decide):
    found = decide(cheat("kept_through_restart"))
    assert found.verdict == "invalid"
    assert found.reason in ("restarted", "last_step"), "the first step after it is wrong, and so is the next"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_work_done_where_no_clock_looks_is_told(decide, name):
    pairs = 32 if name in ("forked", "orphaned") else 8  # a child's clock has ticks of 10 ms
    # Steps of several ms: what the gates let pass beside a block is for the hand-over, not for the step.
    larger = ("workload.width=128", "workload.hidden=256", "workload.rows=64")
    found = decide(cheat(name), f"protocol.pairs={pairs}", *larger)
    assert found.verdict == "invalid"
    assert found.reason in ("background_work", "own_clock"), "CPU time and the parent's clock both see most of these"


def test_tokens_that_were_not_trained_on_are_not_counted(decide):
    found = decide(cheat("inflated_tokens"))
    assert (found.verdict, found.reason) == ("invalid", "tokens")


def test_a_clock_that_the_workload_has_slowed_is_told(decide):
    found = decide(cheat("slow_clock"), "protocol.block_minimum_seconds=0.02")
    assert found.verdict == "invalid"
    assert found.reason in ("own_clock", "garbage"), "too little time, or at no time that its parent knows"


def test_waiting_moved_ahead_of_the_clock_is_told_although_it_takes_no_cpu_time(decide):
    found = decide(cheat("waited_before_the_clock"), "workload.pause=0.005")
    assert found.verdict == "invalid"
    assert found.reason in ("own_clock", "background_work"), "next to none: falling asleep takes some"


def test_results_that_were_computed_ahead_are_suspect_at_the_least(decide):
    found = decide(cheat("rewound"))
    assert found.verdict != "accept" or found.suspect


def test_a_sleep_that_only_control_has_is_contention_of_control(decide):
    found = decide(edit("workload.pause=0.0"), "workload.pause=0.02", "protocol.contention_limit=1.3")
    assert (found.verdict, found.reason) == ("invalid", "contention")
