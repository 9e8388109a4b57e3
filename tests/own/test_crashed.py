"""What is said of a script that dies: its own last words, and what is usual where it ran in a worktree."""

from __future__ import annotations

import pytest

from campaign.copies import Checkout
from campaign.errors import TrialFailed
from campaign.executor.process import LINE_SHOWN, TAIL_BYTES, TrialProcess, build_request, last_line
from campaign.records import Arm
from tests.own.conftest import ask

READS = "open('data/tokens.bin')\n"
WATCHED = {"steps": {"from": "output", "pattern": r"loss (?P<loss>\S+)"}, "tokens": 10}


@pytest.mark.parametrize(
    ("target", "node"),
    [("campaign.launch.Script", {}), ("campaign.launch.Command", WATCHED)],
    ids=["at its gate", "watched"],
)
def test_its_last_line_is_part_of_the_reason(trial, target, node):
    with pytest.raises(TrialFailed, match=r"its last line: FileNotFoundError: .*'data/tokens.bin'") as failed:
        trial(READS, target=target, **node)
    assert (failed.value.reason, failed.value.remedy) == ("crashed", "see the log")


def test_in_a_worktree_the_data_that_git_ignores_is_named_first(tmp_path):
    (tmp_path / "train.py").write_text(READS)
    arm = Arm(
        "control", "root", "campaign.launch.Script", {"name": "own", "device": "cpu", "command": "python train.py"}
    )
    place = Checkout(tmp_path, tmp_path, tmp_path / "own", tmp_path / "own" / "runs", (), ())
    with TrialProcess(arm, tmp_path / "trial.log", place) as process, pytest.raises(TrialFailed) as failed:
        ask(process, "build", **build_request(arm, tmp_path, "", {}))
    assert "data/tokens.bin" in str(failed.value)
    assert "a worktree has nothing that git ignores" in failed.value.remedy


def test_the_last_line_is_one_with_words_and_is_cut(tmp_path):
    log = tmp_path / "trial.log"
    assert last_line(log, {}) == ""
    log.write_bytes(b"first\n" + b"x" * 9000 + b"\xff\n \n\n")
    assert last_line(log, {}) == "x" * LINE_SHOWN + "..."
    log.write_bytes(b"\n \n")
    assert last_line(log, {}) == ""


@pytest.mark.parametrize("before", [0, LINE_SHOWN - 8, TAIL_BYTES - 8])
def test_no_part_of_a_secret_is_in_the_last_line_wherever_it_is_cut(tmp_path, before):
    log = tmp_path / "trial.log"
    secret = "sk-0123456789abcdef"
    log.write_bytes(f"{secret}\n{'x' * before} {secret} {'y' * (TAIL_BYTES - before - 10)}".encode())
    said = last_line(log, {"OPENAI_API_KEY": secret})
    assert not any(secret[at : at + 4] in said for at in range(len(secret) - 3))
