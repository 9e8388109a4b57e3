"""`campaign compare` as a person calls it: two bounded ranges, a step each, and no speedup."""

from __future__ import annotations

import json

import pytest

from campaign.cli import main
from tests.front import profiles

# The norm is fused into one that runs half as long, in both steps of 100 us.
FUSED = (
    (profiles.GEMM, "kernel", 0.0, 60.0),
    ("fused_add_rms_norm_kernel", "kernel", 60.0, 10.0),
    (profiles.GEMM, "kernel", 110.0, 60.0),
    (profiles.COPY, "gpu_memcpy", 190.0, 10.0),
)


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return [str(profiles.kineto(tmp_path / "before.json")), str(profiles.kineto(tmp_path / "after.json.gz", FUSED))]


def test_launches_and_time_are_a_step_and_the_targeted_change_stands_beside_the_total(traces, capsys):
    assert main(["compare", *traces, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["evidence"]) == (1, "profile")
    found = answer["comparison"]
    total = found["total"]
    assert (total["before_launches"], total["after_launches"]) == (2.0, 2.0)
    norm = next(one for one in found["families"] if one["family"] == "norm")
    assert (norm["before_ns"], norm["after_ns"]) == (10_000, 5_000)  # 20 and 10 us in two steps
    assert found["matched"] is True
    assert [name.partition("<")[0] for name in found["appeared"]] == ["fused_add_rms_norm_kernel"]


def test_answer_refuses_to_call_it_a_speedup_and_names_the_command_that_gives_one(traces, capsys):
    assert main(["compare", *traces]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no difference here is a speedup" in said and "campaign hypothesis=" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--steps", "0"], "at least 1 whole step"),
        (["--before-steps", "0"], "--before-steps 0"),
        (["--after-steps", "-3"], "--after-steps -3"),
        (["--steps", "2", "--after-steps", "3"], "--steps is for both"),
        (["--out", "x"], "--out needs a format"),
        (["third.json"], "takes two traces, not 3"),
    ],
)
def test_wrong_words_end_with_2(traces, capsys, words, says):
    assert main(["compare", *traces, *words]) == 2
    said = capsys.readouterr()
    assert says in said.err and "try:" in said.err and said.out == ""


def test_steps_of_each_range_may_be_said(traces, capsys):
    assert main(["compare", *traces, "--before-steps", "1", "--after-steps", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert (found["before_steps"]["count"], found["after_steps"]["count"]) == (1, 4)
    assert (found["total"]["before_launches"], found["total"]["after_launches"]) == (4.0, 1.0)


def test_range_without_steps_makes_both_whole(traces, tmp_path, capsys):
    bare = str(profiles.kineto(tmp_path / "bare.json", FUSED, steps=0))
    assert main(["compare", traces[0], bare, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert found["matched"] is False and "figures are of the whole range" in found["why"]
    assert (found["total"]["before_launches"], found["total"]["after_launches"]) == (4.0, 4.0)


def test_kernel_report_is_no_range(traces, tmp_path, capsys):
    assert main(["compare", traces[0], str(profiles.ncu(tmp_path / "x.csv"))]) == 2
    assert "x.csv: a kernel report has no range" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["md", "html"])
def test_page_is_written(traces, tmp_path, form):
    assert main(["compare", *traces, "--export", form, "--out", "page"]) == 0
    assert "no difference here is a speedup" in (tmp_path / "page").read_text()
