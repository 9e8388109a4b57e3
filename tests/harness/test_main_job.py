"""The main job from the command line to the decision, on real processes, in each way that it can end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger

BASE = ["workload=tiny", "tracking=none"]


def decisions(project, campaign="default"):
    with open_ledger(project, campaign, writable=False) as ledger:
        return ledger.decisions()


def kinds(project, campaign="default"):
    lines = (project / "runs" / campaign / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def test_a_planted_gain_is_screened_confirmed_accepted_and_joins_the_stack(project, capsys):
    edit = "hypothesis.edit.overrides=['workload.sleep=0.01']"
    more = ["protocol.looks=[3]", "protocol.confirm_rounds=3"]  # two rounds would say too little on a busy machine
    assert main([*BASE, "hypothesis=no_sleep", "workload.sleep=0.05", edit, *more]) == 0
    (decision,) = decisions(project)
    # 3 rounds to screen, 3 to confirm, and 3 more because so large a gain is suspect
    assert (decision.verdict.verdict, decision.verdict.valid_rounds) == ("accept", 9)
    assert "above 1.500x" in decision.verdict.suspect
    assert decision.verdict.effect.rounds == 3
    assert decision.verdict.screening.rounds == 3
    # 50 ms of waiting against 10 ms, beside well under 1 ms of work
    assert 3 < decision.verdict.effect.ratio < 6
    written = kinds(project)
    assert written[:3] == ["campaign", "registered", "probe"]
    assert written[-2:] == ["decision", "stack"]
    assert (written.count("trial"), written.count("blocks")) == (18, 9)
    with open_ledger(project, "default", writable=False) as ledger:
        assert [one.hypothesis for one in ledger.stack()] == ["no_sleep"]
    capsys.readouterr()
    assert main(["ledger", "--check"]) == 0
    assert main([*BASE, "hypothesis=no_sleep", "workload.sleep=0.05"]) == 2
    assert "already in the accepted stack" in capsys.readouterr().err


def test_a_planted_loss_is_rejected_as_a_slowdown(project):
    assert main([*BASE, "hypothesis=more_sleep"]) == 0
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.reason) == ("reject", "slowdown")
    assert decision.verdict.effect.ratio < 0.5


def test_the_default_null_measures_the_floor_and_never_accepts(project):
    looks = ["protocol.looks=[3]"]
    assert main([*BASE, *looks]) == 0
    (decision,) = decisions(project)
    assert decision.verdict.verdict == "inconclusive"
    assert decision.verdict.floor.rounds == 3


def test_an_edit_that_changes_nothing_is_invalid_and_times_nothing(project):
    assert main([*BASE, "hypothesis=no_sleep"]) == 3
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.reason) == ("invalid", "no_change")
    assert "blocks" not in kinds(project)


def test_an_edit_that_breaks_the_numerics_is_invalid_and_times_nothing(project):
    assert main([*BASE, "hypothesis=no_sleep", "hypothesis.edit.overrides=['workload.scale=1.5']"]) == 3
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.reason) == ("invalid", "parity")
    assert "blocks" not in kinds(project)


@pytest.mark.parametrize(
    ("fault", "step", "reason"),
    [
        ("raise", 1, "crashed"),
        ("allocate", 5, "out_of_memory"),
        ("kill", 5, "killed"),
        pytest.param("hang", 5, "hung", marks=pytest.mark.slow),  # the deadline itself: test_executor.py
        ("garbage", 5, "garbage"),
    ],
)
def test_a_fault_in_a_trial_becomes_an_invalid_decision_with_its_log(project, fault, step, reason):
    edit = f"hypothesis.edit.overrides=['workload.fault={fault}', 'workload.fault_step={step}']"
    assert main([*BASE, "hypothesis=broken", edit, "protocol.reply_deadline_seconds=5"]) == 3
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.reason) == ("invalid", reason)
    assert "treatment" in decision.verdict.sentence
    if fault == "raise":
        assert "the step was told to fail" in (project / "runs" / "default" / decision.log).read_text()


def test_an_arm_that_this_machine_cannot_run_is_unavailable_with_its_remedy(project):
    edit = "hypothesis.edit.overrides=['workload.fault=unavailable']"
    assert main([*BASE, "hypothesis=broken", edit]) == 3
    (decision,) = decisions(project)
    assert decision.verdict.verdict == "unavailable"
    assert "no machine has" in decision.verdict.sentence
    assert "elsewhere" in decision.verdict.remedy


def wait_for(process, text, seconds=60):
    """Everything printed up to the line that holds `text`."""
    said = ""
    until = time.monotonic() + seconds
    while text not in said:
        line = process.stdout.readline()
        assert line or process.poll() is None, f"ended early:\n{said}"
        assert time.monotonic() < until, said
        said += line
    return said


def children(pid):
    return subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()


def assert_gone(workers):
    """No trial outlives its parent; the kernel may take a moment to bury them."""
    until = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{worker}") for worker in workers):
        assert time.monotonic() < until, "a trial outlived its parent"
        time.sleep(0.05)


def test_an_interrupt_ends_every_child_and_the_same_command_goes_on_from_there(project, command):
    words = ["hypothesis=more_sleep", "protocol.looks=[4]", "protocol.pairs=20"]
    process = command(*words)
    wait_for(process, "screen round 2")
    workers = children(process.pid)
    while len(workers) < 2:
        workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert_gone(workers)
    assert "decision" not in kinds(project)
    assert kinds(project).count("blocks") == 1
    again = command(*words)
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert "going on with" in said
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.valid_rounds) == ("reject", 4)
    assert kinds(project).count("registered") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["terminated", "hung up"])
@pytest.mark.slow
def test_a_polite_kill_cleans_up_as_an_interrupt_does(project, command, tmp_path, number):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("these tests run under nohup, whose children ignore it too")
    process = command("hypothesis=more_sleep", "protocol.pairs=200")
    wait_for(process, "screen round 1")
    while len(workers := children(process.pid)) < 2:
        continue
    process.send_signal(number)
    assert process.wait(20) == 130
    assert_gone(workers)
    assert not list((tmp_path / "leases").glob("campaign-round-*")), "a temporary folder was left"


def test_an_accept_that_its_samples_do_not_bear_out_is_not_built_on(project, capsys):
    assert main([*BASE, "hypothesis=more_sleep"]) == 0
    path = project / "runs" / "default" / "ledger.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"verdict":"reject","reason":"slowdown"', '"verdict":"accept","reason":"faster"'))
    capsys.readouterr()
    assert main([*BASE, "hypothesis=no_sleep"]) == 2
    assert "says accept, but its samples do not" in capsys.readouterr().err


def test_a_killed_parent_takes_its_trials_with_it(project, command):
    process = command("hypothesis=more_sleep", "protocol.pairs=200")
    wait_for(process, "screen round 1")
    while len(workers := children(process.pid)) < 2:
        continue
    process.kill()
    process.wait()
    assert_gone(workers)


@pytest.mark.slow
def test_a_second_campaign_on_the_device_is_refused_or_waits(project, command):
    first = command("hypothesis=more_sleep", "campaign.name=first", "protocol.pairs=2000")
    wait_for(first, "screen round 1")
    refused = command("hypothesis=more_sleep", "campaign.name=second")
    said, _ = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert "'first'" in said
    assert "lease.wait_seconds" in said
    waiting = command("hypothesis=more_sleep", "campaign.name=third", "lease.wait_seconds=120")
    wait_for(waiting, "waiting: cpu is in use")
    first.send_signal(signal.SIGINT)
    assert first.wait(60) == 130
    rest, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, rest
    assert decisions(project, "third")[0].verdict.verdict == "reject"


def test_code_that_changes_while_a_round_runs_makes_it_invalid(project, command):
    process = command("hypothesis=more_sleep", "protocol.pairs=40")
    wait_for(process, "screen round 1")
    while len(children(process.pid)) < 2:
        continue
    (project / "tiny.py").write_text((project / "tiny.py").read_text() + "\n# edited\n")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert decisions(project)[0].verdict.reason == "code_changed"


def test_arms_that_do_not_fit_together_are_measured_apart_and_the_row_says_so(project):
    words = ["hypothesis=more_sleep", "workload.alone=true"]
    looks = ["protocol.looks=[2, 3]", "protocol.alpha_split=[0.5, 0.5]", "protocol.beta_split=[0.5, 0.5]"]
    assert main([*BASE, *words, *looks]) == 0
    (decision,) = decisions(project)
    assert (decision.verdict.verdict, decision.verdict.valid_rounds) == ("reject", 3), "the first look is passed over"
    assert any("alternated" in warning for warning in decision.verdict.warnings)
    assert kinds(project).count("note") == 1
    lines = map(json.loads, (project / "runs" / "default" / "ledger.jsonl").read_text().splitlines())
    trials = [line["body"] for line in lines if line["kind"] == "trial"]
    assert sorted(trial["status"] for trial in trials) == ["interrupted", *["ok"] * 6, "out_of_memory"]
    (failed,) = (trial for trial in trials if trial["status"] == "out_of_memory")
    assert "there is room for one of us" in (project / "runs" / "default" / failed["log"]).read_text()


@pytest.mark.slow
def test_a_run_killed_after_its_decision_shows_it_when_asked_again_and_measures_anew_only_then(project, capsys):
    words = [*BASE, "hypothesis=more_sleep"]
    assert main(words) == 0
    claims = project / "runs" / "default" / "claims"
    assert not list(claims.iterdir()), "a run that ended claims nothing"
    (first,) = decisions(project)
    (claims / first.plan_id).touch()  # as SIGKILL leaves it
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "killed before it ended: this is that decision" in said and "#1 more_sleep: REJECTED" in said
    assert len(decisions(project)) == 1
    assert main(words) == 0
    assert [one.attempt for one in decisions(project)] == [1, 2]
