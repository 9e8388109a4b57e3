"""A run on a stack that is not empty: control, treatment, root and solo in the same rounds, on real processes."""

from __future__ import annotations

import math
import shutil
import statistics

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from campaign.run import write_stack
from tests.builders import PROJECT, laid_down

# Root waits 40 ms a step, each edit takes 10 ms of it away. Two rounds prove little at alpha 0.01, and these tests are
# about what is measured, not about when it is believed.
LOOSE = ["protocol.alpha=0.4", "protocol.confirm_alpha=0.4", "protocol.suspect_ratio=9.0"]
WAITS = ["workload=tiny", "tracking=none", "workload.sleep=0.02", "workload.nap=0.02", *LOOSE]


def decisions(project, campaign="default"):
    with open_ledger(project, campaign, writable=False) as ledger:
        return ledger.decisions()


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A ledger whose stack holds half_sleep, measured once for this module: head waits 30 ms."""
    with pytest.MonkeyPatch.context() as patch:
        root = laid_down(PROJECT, tmp_path_factory.mktemp("accepted"), patch)
        assert main([*WAITS, "hypothesis=half_sleep"]) == 0
        assert decisions(root)[0].verdict.verdict == "accept"
    return root / "runs" / "default"


@pytest.fixture
def stacked(project, accepted):
    """A project of its own with that ledger."""
    shutil.copytree(accepted, project / "runs" / "default")
    return project


def levels(one):
    """Per arm the median over pairs of log(control seconds / its seconds), by plain loops over the raw blocks."""
    seconds = {(block.arm, block.pair): block.wall_seconds / block.steps for block in one.blocks}
    pairs = range(max(pair for _, pair in seconds) + 1)
    return {
        role: statistics.median(math.log(seconds["control", pair] / seconds[role, pair]) for pair in pairs)
        for role in ("control", "treatment", "root", "solo")
    }


def test_an_edit_on_a_stack_is_measured_alone_and_together_in_the_same_rounds(stacked):
    assert main([*WAITS, "hypothesis=half_nap"]) == 0
    first, second = decisions(stacked)
    assert first.verdict.combined is None
    found = second.verdict.combined
    with open_ledger(stacked, "default", writable=False) as ledger:
        evidence = ledger.evidence(second.plan_id)
    roles = {"control", "treatment", "root", "solo"}
    assert all({trial.arm for trial in one.trials} == roles for one in evidence.rounds)
    assert evidence.plan.root.config["sleep"] == 0.02 and evidence.plan.solo.config["nap"] == 0.01
    # Waits of 40, 30, 30 and 20 ms: whatever else the machine does, less waiting is quicker.
    assert 1 < found.isolated.ratio < found.cumulative.ratio
    logs = [levels(one) for one in evidence.rounds if one.stage == "confirm"]
    for ratio, of_round in (
        (found.marginal.ratio, [at["treatment"] for at in logs]),
        (found.isolated.ratio, [at["solo"] - at["root"] for at in logs]),
        (found.cumulative.ratio, [at["treatment"] - at["root"] for at in logs]),
        (found.interaction.ratio, [at["treatment"] - at["solo"] + at["root"] for at in logs]),
    ):
        assert ratio == pytest.approx(math.exp(statistics.fmean(of_round)), rel=1e-9)
    assert found.marginal.ratio == pytest.approx(second.verdict.effect.ratio, rel=1e-12)
    assert main(["ledger", "--check"]) == 0


@pytest.mark.slow
def test_two_arms_are_timed_where_the_protocol_says_so_and_the_plan_says_why(stacked):
    assert main([*WAITS, "hypothesis=half_nap", "protocol.arms=2"]) == 0
    decision = decisions(stacked)[-1]
    assert decision.verdict.combined is None
    with open_ledger(stacked, "default", writable=False) as ledger:
        plan = ledger.plan(decision.plan_id)
    assert (plan.root, plan.solo, plan.two_arms) == (None, None, "protocol.arms=2")


@pytest.mark.slow
def test_solo_that_cannot_run_costs_the_comparison_with_root_and_not_the_decision(stacked):
    # It raises where sleep is still root's 20 ms: on root alone, and not on the stack.
    words = ["hypothesis=half_nap", "hypothesis.edit.overrides=['workload.nap=0.01','workload.fault=needs_less_sleep']"]
    assert main([*WAITS, *words]) == 0
    decision = decisions(stacked)[-1]
    assert (decision.verdict.verdict, decision.verdict.combined) == ("accept", None)
    assert decision.verdict.invalid_rounds == 1
    assert main(["ledger", "--check"]) == 0


@pytest.mark.slow
def test_a_decision_is_stale_when_the_stack_moved_and_is_measured_again_on_the_present_one(
    stacked, monkeypatch, capsys
):
    from campaign.run import measure

    real, moved = measure.run_round, []

    def while_a_person_reverts(plan, request):
        if not moved:
            moved.append(main(["stack", "--revert", "half_sleep", "--why", "another process says so"]))
        return real(plan, request)

    monkeypatch.setattr(measure, "run_round", while_a_person_reverts)
    assert main([*WAITS, "hypothesis=half_nap"]) == 0
    assert moved == [0]
    _, late, again = decisions(stacked)
    assert (late.verdict.verdict, late.verdict.reason) == ("invalid", "stale")
    assert "head became root before the decision; it would have been accept" in late.verdict.sentence
    assert (again.verdict.verdict, again.stack) == ("accept", ())
    with open_ledger(stacked, "default", writable=False) as ledger:
        assert [one.hypothesis for one in ledger.stack()] == ["half_nap"]
    assert main(["ledger", "--check"]) == 0


def test_another_workload_asks_for_a_campaign_of_its_own(stacked, capsys):
    assert main(["hypothesis=aa_null", "tracking=none"]) == 2
    said = capsys.readouterr().err
    assert "campaign 'default' belongs to tiny on cpu, and this is reference_cpu on cpu" in said
    assert "campaign.name=reference_cpu_cpu" in said


def test_an_edit_of_a_key_that_the_stack_sets_is_refused_by_both_names_before_anything_is_timed(stacked, capsys):
    assert main([*WAITS, "hypothesis=no_sleep"]) == 2
    said = capsys.readouterr().err
    assert "half_sleep and no_sleep set the same key: workload.sleep=0.01 and workload.sleep=0.0" in said
    assert len(decisions(stacked)) == 1
    with open_ledger(stacked, "default", writable=True) as ledger:
        write_stack(ledger)  # the ledger is as it was, and sound
