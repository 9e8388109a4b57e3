"""What a run says while it runs, and to whom."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.records import Surroundings
from campaign.report.progress import Progress, rounds_text
from tests.reasoning import made, several
from tests.report import written

ROOT = Path(__file__).parents[2]
PLAN = written.plan("fusion", protocol={"looks": (4, 6)})


class Clock:
    """Seconds that pass only when told."""

    now = 0.0

    def __call__(self):
        return self.now


def told(progress, logs=(0.1,), **changes):
    """A run of rounds at these logs, as `run` tells it."""
    rounds = written.rounds(PLAN, logs, **changes)
    progress.start(PLAN, ["governor is powersave"])
    progress.probing("control and treatment")
    for index, one in enumerate(rounds):
        progress.round_started("screen", index, 4)
        for done in range(1, 81):
            progress.block(done, 80)
        progress.round_done(one, made.evidence(plan=PLAN, rounds=rounds[: index + 1]))


def test_what_the_hypothesis_needs_is_said_at_the_start():
    output = io.StringIO()
    Progress(output=output).start(replace(PLAN, hypothesis=replace(PLAN.hypothesis, needs=("compiler", "avx512"))))
    assert output.getvalue().splitlines()[0].endswith("predicted 1.100x, needs compiler, avx512")


def test_a_pipe_gets_one_line_an_event_and_no_escape_sequences():
    output = io.StringIO()
    with Progress(output=output) as progress:
        told(progress, (0.1, 0.2))
        progress.decision("#1 fusion: ACCEPTED")
    # e^.1 = 1.105, e^.2 = 1.221; each round took 10 s; 6 at the last look and 4 to confirm, so 9 and then 8 are left
    assert output.getvalue().splitlines() == [
        "fusion on root: hybrid_tiny, cpu, predicted 1.100x",
        "plan fusion-1: looks after 4, 6 rounds, then 4 to confirm a gain; 2 pairs a round, wall clock, alpha 0.01, "
        "accept from 1.030x",
        "warning: governor is powersave",
        "probe, untimed: control and treatment",
        "screen round 1 of 4",
        "screen round 1 of 4: 1.105x, took 10.00 s; up to 1 min 30 s left",
        "screen round 2 of 4",
        "screen round 2 of 4: 1.221x, took 10.00 s; up to 1 min 20 s left",
        "#1 fusion: ACCEPTED",
    ]


def test_an_invalid_round_says_why_and_does_not_shorten_the_wait():
    output = io.StringIO()
    with Progress(output=output) as progress:
        told(progress, surroundings=Surroundings(foreign=("pid 7 python",)))
    assert "screen round 1 of 4: not counted (foreign_work), took 10.00 s; up to 1 min 40 s left" in output.getvalue()


def test_a_replacement_round_is_counted_for_the_valid_ones():
    output = io.StringIO()
    with Progress(output=output) as progress:
        progress.round_started("screen", 4, 4)
    assert output.getvalue() == "screen round 5 (for 4 valid ones)\n"


def test_a_failed_trial_names_its_failure():
    output = io.StringIO()
    with Progress(output=output) as progress:
        told(progress, treatment_trial={"status": "out_of_memory"})
    assert "not counted (out_of_memory)" in output.getvalue()


def test_confirmation_leaves_only_its_own_rounds():
    output = io.StringIO()
    screen, confirm = written.rounds(PLAN, (0.1,) * 4), written.rounds(PLAN, (0.1,), "confirm")
    with Progress(output=output) as progress:
        progress.round_started("confirm", 0, 4)
        progress.round_done(confirm[0], made.evidence(plan=PLAN, rounds=(*screen, *confirm)))
    assert output.getvalue().splitlines()[1] == "confirm round 1 of 4: 1.105x, took 10.00 s; up to 30.00 s left"


@pytest.mark.parametrize("change", ["null", "quick"])
def test_what_cannot_accept_expects_no_confirmation(change):
    plan = made.with_hypothesis(PLAN, null=True) if change == "null" else made.with_protocol(PLAN, decisive=False)
    output = io.StringIO()
    rounds = written.rounds(plan, (0.1,))
    with Progress(output=output) as progress:
        progress.start(plan)
        progress.round_done(rounds[0], made.evidence(plan=plan, rounds=rounds))
    assert "looks after 4, 6 rounds, which cannot accept" in output.getvalue()
    assert "up to 50.00 s left" in output.getvalue()


def test_json_keeps_stdout_for_the_decision_and_sends_events_on_stderr():
    output, errors = io.StringIO(), io.StringIO()
    with Progress(json=True, output=output, errors=errors) as progress:
        progress.waiting("pid 7 measures")
        told(progress)
        progress.decision('{"schema": 1}')
    assert output.getvalue() == '{"schema": 1}\n'
    events = [json.loads(line) for line in errors.getvalue().splitlines()]
    assert {event["schema"] for event in events} == {1}
    assert [event["event"] for event in events] == [
        "waiting", "notice", "plan", "warning", "probe", "round", "round_over"
    ]  # fmt: skip
    assert events[2]["looks"] == [4, 6] and events[2]["subject"] == "fusion"
    # The round took 10 s; 5 more to the last look and 4 to confirm are left.
    last = events[-1]
    assert (last["stage"], last["round"], last["of"], last["counted"], last["faults"]) == ("screen", 1, 4, True, [])
    assert (last["seconds"], last["seconds_left_at_most"]) == (10.0, 90.0)
    assert last["text"] == "screen round 1 of 4: 1.105x, took 10.00 s; up to 1 min 30 s left"


def test_a_terminal_gets_a_live_line_with_elapsed_and_left():
    output, clock = io.StringIO(), Clock()
    with Progress(output=output, terminal=True, clock=clock) as progress:
        clock.now = 75.0
        told(progress)
        progress.decision("#1 fusion: ACCEPTED")
    text = output.getvalue()
    assert "1 min 15 s so far, time left not known yet" in text
    assert "screen round 1 of 4: block 40 of 80" in text
    assert text.endswith("#1 fusion: ACCEPTED\n")


def test_a_terminal_is_redrawn_a_few_times_a_round_and_only_between_pairs():
    output = io.StringIO()
    with Progress(output=output, terminal=True) as progress:
        progress.round_started("screen", 0, 4)
        drawn = []
        for done in range(1, 81):
            before = output.tell()
            progress.block(done, 80)
            if output.tell() != before:
                drawn.append(done)
    assert drawn == [10, 20, 30, 40, 50, 60, 70, 80]


def test_no_thread_of_ours_runs_beside_a_timed_block():
    before = threading.active_count()
    with Progress(output=io.StringIO(), terminal=True) as progress:
        progress.round_started("screen", 0, 4)
        assert threading.active_count() == before


def test_brackets_are_not_taken_for_markup_on_a_terminal():
    output = io.StringIO()
    with Progress(output=output, terminal=True) as progress:
        progress.notice("arms [red]x[/red]")
    assert "arms [red]x[/red]" in output.getvalue()


def test_a_reader_that_leaves_does_not_end_the_measurement():
    script = """
from campaign.report.progress import Progress
with Progress() as progress:
    for number in range(20000):
        progress.notice(f"event {number}")
    progress.decision("decided")
import sys
sys.stderr.write("reached the end")
"""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    os.close(reading)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "reached the end")


def test_rounds_already_there_when_a_run_goes_on_are_counted():
    output = io.StringIO()
    rounds = written.rounds(PLAN, (0.1,) * 3)
    with Progress(output=output) as progress:
        progress.round_done(rounds[2], made.evidence(plan=PLAN, rounds=rounds))
    # 3 of 6 are done and 4 confirm: 7 rounds of the one that was seen
    assert "up to 1 min 10 s left" in output.getvalue()
    assert output.getvalue().startswith(f"{rounds[2].id}: 1.105x")


def test_a_slow_round_moves_the_estimate():
    output = io.StringIO()
    slow = replace(written.rounds(PLAN, (0.1,))[0], wall_seconds=30.0)
    with Progress(output=output) as progress:
        progress.round_done(slow, made.evidence(plan=PLAN, rounds=(slow,)))
    assert "up to 4 min 30 s left" in output.getvalue()


STUDY = made.study(
    ["root", "A", "B", "A+B"],
    groups=(("root", "A", "B"), ("root", "A+B")),
    rounds=2,
    threshold=0.03,
    protocol=PLAN.protocol,
)


def test_a_study_says_what_it_takes_and_counts_down_the_rounds_of_every_group():
    output = io.StringIO()
    first = several.evidence_of(STUDY, {"root": 0.0, "A": 0.1, "B": 0.2})
    with Progress(output=output) as progress:
        progress.study(STUDY, ["governor is powersave"])
        progress.round_started("group-1", 0, 1)
        progress.study_round_done(first.rounds[0], first)
        progress.finding("finding 1: interactions\ntogether 1.2x")
        progress.decision("done")
    # One of four rounds is over, which took 10 s, so three are left.
    assert output.getvalue().splitlines() == [
        "factorial of A, B: tiny, cpu, 4 rounds: 2 of 3 arms and 2 of 2",
        "study study-1: 2 pairs a round, wall clock, worth it from 1.030x",
        "warning: governor is powersave",
        "group-1 round 1 of 2",
        "group-1 round 1 of 2: counted, 3 arms, took 10.00 s; up to 30.00 s left",
        "finding 1: interactions",
        "together 1.2x",
        "done",
    ]


def test_a_study_of_two_arms_shows_the_ratio_of_each_round_and_an_invalid_one_why():
    study = made.study(
        ["root", "head"], kind="headline", rounds=2, protocol=PLAN.protocol, members={"root": (), "head": ("A",)}
    )
    # e^.2 = 1.221
    good = several.evidence_of(study, {"root": 0.0, "head": 0.2})
    foreign = Surroundings(foreign=("pid 7 python",))
    bad = several.evidence_of(study, {"root": 0.0, "head": 0.2}, surroundings=foreign, id="another")
    output = io.StringIO()
    with Progress(output=output) as progress:
        progress.study(study)
        progress.study_round_done(good.rounds[0], good)
        progress.study(study)
        progress.study_round_done(bad.rounds[0], bad)
    said = output.getvalue()
    assert "1.221x, took 10.00 s; up to 10.00 s left" in said
    assert "not counted (foreign_work), took 10.00 s; up to 20.00 s left" in said


@pytest.mark.parametrize(
    ("sizes", "rounds", "said"),
    [
        ([5], 6, "6 rounds of 5 arms"),
        ([2], 1, "1 round of 2 arms"),
        ([6, 6, 6], 6, "18 rounds of 6 arms"),
        ([4, 8], 6, "12 rounds: 6 of 8 arms and 6 of 4"),
        ([8, 8, 6], 3, "9 rounds: 6 of 8 arms and 3 of 6"),
    ],
)
def test_the_rounds_of_a_study_are_said_by_their_size(sizes, rounds, said):
    assert rounds_text(sizes, rounds) == said


def test_findings_of_a_run_that_answers_in_json_stay_off_standard_output():
    output, errors = io.StringIO(), io.StringIO()
    with Progress(json=True, output=output, errors=errors) as progress:
        progress.finding("finding 1: interactions")
    assert output.getvalue() == ""
    event = json.loads(errors.getvalue())
    assert (event["event"], event["text"]) == ("finding", "finding 1: interactions")
