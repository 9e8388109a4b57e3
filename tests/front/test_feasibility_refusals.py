"""What `campaign feasibility` refuses, each with its rule and a command that works, and the ends of what it takes."""

from __future__ import annotations

import shlex

import pytest

from campaign.cli import main
from campaign.feasibility.quantities import example
from tests.front.test_feasibility import CASE_F, GOAL, asked, nowhere, own_project
from tests.report import written

__all__ = ["nowhere", "own_project"]  # fixtures


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "how many days are there? --days"),
        (("--days", "7"), "how many tokens? --tokens-per-parameter, or --token-budget"),
        (("--days", "7", "--tokens-per-parameter", "20"), "--tokens-per-parameter needs --parameters"),
        (GOAL, "no tokens a second: none given, and no ledger here"),
        ((*CASE_F, "--days", "0"), "--days 0: a time"),
        ((*CASE_F, "--days", "1e-300"), "--days 1e-300: a time"),
        ((*CASE_F, "--tokens-per-second", "1e-300"), "--tokens-per-second 1e-300: tokens a second of one device, from"),
        ((*CASE_F, "--days", "soon"), "--days soon: a time"),
        ((*CASE_F, "--parameters", "-1"), "--parameters -1: a count of parameters, from 1"),
        ((*CASE_F, "--parameters", "1.0009e9B"), "--parameters 1.0009e9B: a count of parameters, from 1 to"),
        ((*CASE_F, "--tokens-per-second", "fast"), "--tokens-per-second fast: tokens a second of one device"),
        ((*CASE_F, "--tokens-per-parameter", "nan"), "--tokens-per-parameter nan: a ratio"),
        ((*CASE_F, "--token-budget", "20B"), "are two budgets: give one"),
        ((*CASE_F[:4], "--days", "7", "--token-budget", "x"), "--token-budget x: a count of tokens"),
        ((*CASE_F, "--devices", "1.5"), "--devices 1.5: a number of devices, a whole number from 1"),
        ((*CASE_F, "--devices", "0"), "--devices 0: a number of devices"),
        ((*CASE_F, "--scaling-efficiency", "1.2"), "--scaling-efficiency 1.2: a part, from 0.001 to 1"),
        ((*CASE_F, "--overhead", "3"), "--overhead 3: a share of the wall time, from 0 to below 1"),
        ((*CASE_F, "--overhead", "60%", "--input-share", "0.4"), "leave none to training"),
        ((*CASE_F, "--device", "h900"), "there is no device 'h900'"),
        ((*CASE_F, "--device", "a100", "--precision", "fp8"), "NVIDIA A100 80GB SXM has no rate for it"),
        ((*CASE_F, "--precision", "int3"), "there is no precision 'int3'"),
        ((*CASE_F, "--peak", "0"), "--peak 0: operations a second"),
        ((*CASE_F, "--measure", "tpu"), "--measure tpu: cpu, cuda or cuda:N"),
        ((*CASE_F, "--context", "2048"), "all three or none"),
        ((*CASE_F[:2], "--token-budget", "20B", "--days", "7", "--device", "h100"), "a utilisation is 6 operations"),
        ((*CASE_F, "--export", "md", "--json"), "two forms of one answer"),
        ((*CASE_F, "--out", "x"), "--out needs a format"),
        ((*CASE_F, "--devises", "2"), "--devices"),
    ],
)
def test_wrong_number_is_refused_with_the_rule_and_a_command_that_works(nowhere, capsys, words, said):
    assert main(["feasibility", *words]) == 2
    message, _, remedy = capsys.readouterr().err.partition("\n  try: ")
    assert said in message and "Traceback" not in message
    remedy = remedy.strip()
    if "--measure" not in remedy:  # which takes seconds, and has a test of its own
        assert remedy.startswith("campaign feasibility") and main(shlex.split(remedy)[1:]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--tokens-per-second", "0.001", "--token-budget", "1e18", "--days", "1h", "--scaling-efficiency", "0.1%"),
        ("--tokens-per-second", "1e12", "--token-budget", "1", "--days", "36500", "--parameters", "1", "--peak", "1M"),
        ("--tokens-per-second", "0.001", "--parameters", "1e15", "--tokens-per-parameter", "1k", "--days", "1h",
         "--peak", "1M", "--devices", "1M", "--overhead", "0.999999", "--context", "1B", "--layers", "1k",
         "--width", "1M"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [(), ("--json",), ("--export", "md")])
def test_the_ends_of_every_range_are_answered(nowhere, capsys, words, form):
    assert main(["feasibility", *words, *form]) == 0
    said = capsys.readouterr().out
    assert "nan" not in said.lower() and " inf" not in said.lower()


def test_named_campaign_that_does_not_exist_is_refused_and_an_empty_project_says_what_to_give(own_project, capsys):
    assert main(["feasibility", *GOAL]) == 2
    assert "no ledger here" in capsys.readouterr().err
    with written.opened(own_project, "demo") as ledger:
        ledger.append("note", "n1", {"text": "nothing is measured yet"})
    assert main(["feasibility", *GOAL, "--campaign", "demo"]) == 2
    assert "campaign 'demo' has measured none" in capsys.readouterr().err
    assert main(["feasibility", *CASE_F, "--campaign", "dmo"]) == 2
    assert "did you mean 'demo'" in capsys.readouterr().err


def test_the_example_of_every_remedy_is_the_published_case(nowhere, capsys):
    assert asked(capsys, *shlex.split(example())[2:])["verdict"] == "not on this device"


@pytest.mark.slow
def test_device_that_is_not_here_is_unavailable_with_a_command_that_works(nowhere, capsys, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["feasibility", *CASE_F, "--measure", "cuda"]) == 3
    said = capsys.readouterr().err
    assert "torch sees no CUDA device" in said and "--measure cpu" in said
