"""Command lines, and commands that are only watched."""

from __future__ import annotations

import json
import sys
import time

import pytest

from campaign.errors import TrialFailed
from campaign.launch.command import CommandLine, Failed
from campaign.launch.ranks import merged
from tests.own.conftest import ask

TELLING = """
import itertools, sys, time
for step in itertools.count(1):
    time.sleep(0.02)
    print(f"step {step} loss {0.5 ** step:.6f}")
"""
PATTERN = r"step (?P<step>\d+) loss (?P<loss>[\d.]+)"
WATCHED = {"target": "campaign.launch.Command", "steps": {"from": "output", "pattern": PATTERN}, "tokens": 10}


@pytest.mark.parametrize(
    "node, words",
    [
        ({"command": "./train --fast"}, ["./train", "--fast"]),
        ({"command": ["python", "a b.py"]}, [sys.executable, "a b.py"]),
        ({"command": "run", "flags": {"lr": 0.1, "name": "a b"}}, ["run", "--lr=0.1", "--name=a b"]),
        ({"command": "run {overrides} --last", "flags": {"lr": 1}}, ["run", "--lr=1", "--last"]),
        ({"command": "run", "flags": {"on": True, "off": False, "none": None}}, ["run", "--on"]),
        ({"command": "run", "flags": {"x": [1, 2]}}, ["run", "--x=1", "--x=2"]),
        ({"command": "run", "flags": {"lr": 1}, "flag": "--{name} {value}"}, ["run", "--lr", "1"]),
        (
            {
                "command": "run",
                "flags": {"a": {"b": 1, "c": {"d": None, "e": False}}, "on": True},
                "flag": "{name}={value}",
            },
            ["run", "a.b=1", "a.c.e=false", "on=true"],
        ),
        (
            {"command": "run", "flags": {"model": {"depth": 4, "tied": True}}},
            ["run", "--model.depth=4", "--model.tied"],
        ),
        ({"command": "run", "flags": {"x": "$(rm -rf /); `id`"}}, ["run", "--x=$(rm -rf /); `id`"]),
    ],
)
def test_a_command_line_is_words_and_no_shell(node, words):
    assert CommandLine(**node).words() == words


def test_a_program_or_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Failed, match="no-such-program cannot be started: No such file"):
        CommandLine("no-such-program").start(tmp_path, {})
    with pytest.raises(Failed, match="nowhere is no folder"):
        CommandLine("python", directory="nowhere").start(tmp_path, {})


def test_a_watched_command_is_timed_by_what_it_tells(trial):
    begun = time.perf_counter()
    process = trial(TELLING, **WATCHED)
    assert process.built["facts"]["protocol"] == "processes in turn"
    block = ask(process, "block", steps=10)
    assert (block["steps"], block["tokens"]) == (10, 100)
    more = ask(process, "block", steps=30)["wall_seconds"]
    told = block["wall_seconds"] + more
    assert 0.8 * 40 * 0.02 <= told <= time.perf_counter() - begun, "each sleeps 20 ms; the first may be read late"
    assert 1.5 < more / block["wall_seconds"] < 6, "three times as many steps"
    assert block["loss"] == pytest.approx(0.5**11, abs=1e-6), "the first step's end is the start of the clock"
    assert ask(process, "memory")["live_peak_bytes"] > 1 << 20


def test_a_command_that_tells_every_tenth_step_is_timed_by_tens(trial):
    script = TELLING.replace("print(", "if step % 10 == 0: print(")
    process = trial(script, **WATCHED)
    assert ask(process, "block", steps=1)["steps"] == 10


def test_steps_are_read_from_lines_that_are_appended_to_a_file(trial):
    script = (
        "import json, time\n"
        "for step in range(1, 1000):\n"
        "    with open('log.jsonl', 'a') as file:\n"
        "        print(json.dumps({'n': step, 'train': {'x': 1}, 'loss': 1.0 / step}), file=file)\n"
        "        print(json.dumps({'eval': step}), file=file)\n"
        "    time.sleep(0.01)\n"
    )
    node = {**WATCHED, "steps": {"from": "jsonl", "file": "log.jsonl", "loss": "loss", "step": "n"}}
    earlier = trial("", build=False, **node).log.parent / "log.jsonl"
    earlier.write_text(json.dumps({"n": 77, "loss": 77.0}) + "\n")
    process = trial(script, **node)
    assert ask(process, "block", steps=3)["loss"] == pytest.approx(1 / 4), "an earlier run's lines are not its steps"


def test_output_in_which_no_step_is_found_is_told_with_how_the_command_ended(trial):
    with pytest.raises(TrialFailed, match=r"exited with 0 before its first step; does workload\.steps fit"):
        trial("print('epoch 1')\n", **WATCHED)


def test_a_watched_command_that_ends_early_says_what_to_raise(trial):
    process = trial(TELLING.replace("itertools.count(1)", "range(1, 5)"), **WATCHED)
    with pytest.raises(TrialFailed, match="the protocol wants more steps") as failed:
        ask(process, "block", steps=100)
    assert "raise its own limit of steps" in failed.value.remedy


@pytest.mark.parametrize(
    "steps, said",
    [
        ({"from": "tea leaves"}, "must be one of output, jsonl, tensorboard, mlflow"),
        ({"from": "output"}, r"workload\.steps\.pattern is missing"),
        ({"from": "output", "pattern": "("}, "does not compile"),
        ({"from": "output", "pattern": "(?P<speed>x)"}, "speed"),
        ({"from": "output", "pattern": 5}, "must be a text"),
        ({"from": "jsonl"}, r"workload\.steps\.file is missing"),
        ({"from": "jsonl", "file": "log", "los": "loss"}, r"workload\.steps\.los is no key of from: jsonl"),
        ({"from": "tensorboard", "folder": "logs"}, r"workload\.steps\.loss is missing"),
    ],
)
def test_a_place_of_steps_that_cannot_be_read_is_refused(trial, steps, said):
    with pytest.raises(TrialFailed, match=said):
        trial(TELLING, **{**WATCHED, "steps": steps})


def test_a_watched_loss_that_is_not_finite_ends_the_trial(trial):
    process = trial(TELLING.replace("{0.5 ** step:.6f}", "{'0.5' if step < 3 else '9' * 400}"), **WATCHED)
    with pytest.raises(TrialFailed, match="loss is inf"):
        ask(process, "block", steps=10)


def test_a_step_of_several_ranks_is_the_slowest_ranks():
    def block(wall, loss):
        named = {"steps": 5, "tokens": 50, "cpu_seconds": wall / 2, "device_seconds": None, "recompiled": 0}
        rest = {"involuntary_switches": 1, "idle_cpu_seconds": 0.25, "gradient_norm": wall}
        return {**named, **rest, "wall_seconds": wall, "loss": loss}

    found = merged("block", [block(1.0, 2.0), block(3.0, 4.0)])
    assert (found["wall_seconds"], found["cpu_seconds"], found["tokens"], found["steps"]) == (3.0, 1.5, 100, 5)
    assert (found["involuntary_switches"], found["idle_cpu_seconds"], found["loss"]) == (2, 0.5, 3.0)
    assert found["gradient_norm"] == 1.0, "rank 0's: after the ranks have summed them they are the same"


def test_memory_of_several_ranks_is_the_largest():
    ranks = [{"live_peak_bytes": 5, "process_peak_bytes": None, "limit_bytes": 9, "loss": None}]
    ranks += [{"live_peak_bytes": 7, "process_peak_bytes": 3, "limit_bytes": 9, "loss": None}]
    found = merged("memory", ranks)
    assert (found["live_peak_bytes"], found["process_peak_bytes"], found["loss"]) == (7, 3, None)


def test_the_probed_losses_of_several_ranks_are_the_mean_of_those_that_tell_them():
    told, untold = {"losses": [1.0, 2.0], "facts": {}}, {"losses": [], "facts": {}}
    assert merged("probe", [told, untold])["losses"] == [1.0, 2.0]
    assert merged("probe", [untold, {"losses": [3.0, 4.0]}, told])["losses"] == [2.0, 3.0]
    assert merged("probe", [untold, untold])["losses"] == []
    with pytest.raises(Failed, match="the ranks tell 2, 1 losses"):
        merged("probe", [told, {"losses": [1.0]}])


def test_cpu_time_of_blocks_that_follow_one_another_is_all_there_and_counted_once(trial):
    # Each step works for 25 ms of CPU time and tells, as its loss, how much it has used so far.
    script = (
        "import time\nwhile True:\n    until = time.process_time() + 0.025\n"
        "    while time.process_time() < until: pass\n    print(f'step loss {time.process_time():.6f}', flush=True)\n"
    )
    process = trial(script, **{**WATCHED, "steps": {"from": "output", "pattern": r"loss (?P<loss>\S+)"}})
    begun = ask(process, "block", steps=1)["loss"]
    blocks = [ask(process, "block", steps=1) for _ in range(20)]
    used = blocks[-1]["loss"] - begun
    assert sum(block["cpu_seconds"] for block in blocks) == pytest.approx(used, rel=0.1)
