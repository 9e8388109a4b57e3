"""`campaign.measure` on real processes. What is timed here is too short to say anything: no test looks at a number that
the machine's day decides, but for the slow one at the end."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

import campaign
from campaign.errors import BadInput, LeaseHeld
from campaign.ledger import open_ledger
from campaign.report.check import check
from tests.own.quick import QUICK

PLANTED = "hunter2-never-on-disk"


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """An empty working directory, and a lease of its own, so that no real campaign waits."""
    folder = tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("leases")))
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.chdir(folder)
        yield folder


def descending(work):
    """A step with a state: gradient descent on x * x from 1 after a loop, with a little noise from the generator."""
    state = {"x": 1.0, "secret": PLANTED}

    def step():
        for _ in range(work):
            pass
        state["x"] -= 0.1 * (2 * state["x"]) + 1e-9 * random.random()
        return state["x"] ** 2

    return step


@pytest.fixture(scope="module")
def compared(here):
    return campaign.measure(descending(4000), descending(1000), name=("slow", "fast"), tokens=8, **QUICK)


def test_each_round_is_a_fresh_process_an_arm_and_the_verdict_is_that_of_a_run(compared):
    plan, rounds = compared.evidence.plan, compared.evidence.rounds
    valid = [one for one in rounds if all(trial.status == "ok" for trial in one.trials)]
    assert len(valid) >= 2
    assert {trial.arm for trial in valid[0].trials} == {"control", "treatment"}
    assert sorted(block.arm for block in valid[0].blocks) == ["control"] * 2 + ["treatment"] * 2
    assert {block.tokens / block.steps for one in valid for block in one.blocks} == {8}
    assert (compared.verdict, compared.control, compared.treatment) == ("inconclusive", "slow", "fast")
    assert compared.judged_again() == compared.decision.verdict
    assert (plan.protocol.name, plan.protocol.pairs, plan.protocol.looks, plan.protocol.alpha) == (
        "quick",
        2,
        (2,),
        0.01,
    )


def test_both_start_from_the_state_in_which_they_were_given_and_again_after_a_restart(compared):
    control, treatment = (compared.evidence.probe.arm(role) for role in ("control", "treatment"))
    # x goes 1, 0.8, 0.64, ...: the loss is 0.64 ** (step number), but for the noise of 1e-9 a step.
    assert control.losses == pytest.approx([0.64, 0.64**2, 0.64**3, 0.64**4], abs=1e-7)
    assert control.losses == treatment.losses, "both draw the same random numbers"
    assert control.losses[0] != 0.64
    for one in compared.evidence.rounds:
        assert {trial.restart_loss for trial in one.trials} == {control.losses[0]}
    assert compared.compared
    assert compared.evidence.plan.hypothesis.parity.kind == "loss"


def test_a_comparison_comes_back_from_its_json_and_is_judged_from_it(compared):
    again = campaign.Comparison.from_json(compared.to_json())
    assert again == compared
    body = json.loads(compared.to_json())
    body["decision"]["verdict"]["effect"]["ratio"] *= 1.5
    with pytest.raises(BadInput, match=r"verdict.effect.ratio is recorded as"):
        campaign.Comparison.from_json(json.dumps(body))
    with pytest.raises(BadInput, match="this is no comparison"):
        campaign.Comparison.from_json("{}")


def test_a_comparison_is_said_in_one_line_in_a_block_and_as_a_table(compared):
    low, high = compared.interval
    number = f"{compared.ratio:.3f}x [{low:.3f}, {high:.3f}]"
    assert repr(compared).startswith(
        f"<Comparison fast against slow: inconclusive ({compared.reason}), {number} over 2"
    )
    assert "\n" not in repr(compared)
    lines = str(compared).splitlines()
    assert lines[0] == f"fast against slow: INCONCLUSIVE ({compared.reason})"
    assert any(line.startswith("  measured") and number in line for line in lines)
    assert any(line.startswith("  computed   loss: ok") for line in lines)
    assert "<td" in compared._repr_html_() and number in compared._repr_html_()
    assert "aa_null" not in str(compared), "there is no project to run it in"


def test_the_figure_has_each_rounds_ratio(compared):
    ratios = compared.figure().axes[0]
    points = next(line for line in ratios.lines if line.get_label() == "one round")
    assert list(points.get_ydata()) == list(compared.decision.verdict.effect.round_ratios)


def test_without_a_ledger_nothing_is_left_behind(compared, here):
    assert list(here.iterdir()) == []
    left = [path.name for path in Path(os.environ["TMPDIR"]).iterdir()]
    assert left == ["campaign-lease-cpu.lock"]
    assert PLANTED not in compared.to_json()


def test_steps_that_return_nothing_are_said_not_to_be_compared(here):
    def nothing():
        sum(range(20_000))

    found = campaign.measure(nothing, nothing, **QUICK)
    assert found.verdict == "inconclusive", str(found)
    assert not found.compared
    assert repr(found).endswith("what they compute was not compared>")
    assert "computed   NOT compared: the steps return nothing" in str(found)
    assert campaign.Comparison.from_json(found.to_json()) == found


def test_another_loss_is_no_speedup(here):
    found = campaign.measure(lambda: 1.0, lambda: 1.1, name=("right", "wrong"), **QUICK)
    assert (found.verdict, found.reason, found.ratio) == ("invalid", "parity", None)
    near = campaign.measure(lambda: 1.0, lambda: 1.1, loss_bound=0.2, **QUICK)
    assert near.reason != "parity"
    exact = campaign.measure(lambda: 1.0, lambda: 1.0 + 2**-52, parity="bitwise", **QUICK)
    assert exact.reason == "parity"
    with pytest.raises(BadInput, match="there is no ratio to draw"):
        found.figure()


def test_a_step_that_raises_is_an_invalid_comparison_with_what_it_printed(here):
    def broken():
        print("on my way")
        raise RuntimeError("the batch is empty")

    found = campaign.measure(lambda: 1.0, broken, **QUICK)
    assert (found.verdict, found.reason) == ("invalid", "crashed")
    assert "RuntimeError: the batch is empty" in found.decision.verdict.sentence
    assert "on my way" in found.log and "on my way" in str(found) and "on my way" in found._repr_html_()


def test_what_cannot_travel_is_built_in_the_trial(here, tmp_path):
    (tmp_path / "batches.txt").write_text("1 2 3")

    def make():
        lines = open(tmp_path / "batches.txt")  # an open file, which no process could be given
        numbers = [int(word) for word in lines.read().split()]

        def step():
            return float(sum(numbers)) if not lines.closed else None

        return step

    found = campaign.measure(campaign.Setup(make), campaign.Setup(make), **QUICK)
    assert found.evidence.probe.arm("control").losses == (6.0, 6.0, 6.0, 6.0)
    assert all(trial.restart_loss == 6.0 for one in found.evidence.rounds for trial in one.trials)


def test_a_ledger_that_is_asked_for_holds_the_decision_and_never_the_callable(here):
    given = {"name": ("slow", "fast"), "ledger": "runs/steps", **QUICK}
    found = campaign.measure(descending(2000), descending(1000), **given)
    with open_ledger(here, "steps", writable=False) as ledger:
        assert check(ledger).decisions == 1
        assert ledger.evidence(found.evidence.plan.id) == found.evidence
        (decision,) = ledger.decisions()
        assert decision == found.decision
    written = [path for path in (here / "runs").rglob("*") if path.is_file()]
    assert len(written) > 3
    assert not [path for path in written if PLANTED.encode() in path.read_bytes()]
    assert not [path for path in written if b"pickled" in path.read_bytes()]
    with pytest.raises(BadInput, match="belongs to slow on cpu, and this is other on cpu"):
        campaign.measure(descending(1), descending(1), **{**given, "name": ("other", "fast")})
    with open_ledger(here, "steps", writable=True) as ledger:
        ledger.rule(found.decision.id, "accept", "for the test")
    with pytest.raises(BadInput, match="fast is accepted in") as refused:
        campaign.measure(descending(1), descending(1), **{**given, "name": ("slow", "faster")})
    assert refused.value.remedy == "ledger='runs/steps-2', with fast as its control"


def test_a_device_that_is_measured_on_is_waited_for_and_then_refused(here):
    from campaign import lease

    with lease.hold("cpu", holder="another"), pytest.raises(LeaseHeld, match="'another'") as refused:
        campaign.measure(lambda: 1.0, lambda: 1.0, **QUICK)
    assert refused.value.remedy == "campaign.measure(..., wait_seconds=600)"


@pytest.mark.slow
def test_a_training_step_in_torch_is_compared_by_its_loss_and_weighed_by_its_tensors(here):
    torch = pytest.importorskip("torch")

    def build(width):
        torch.manual_seed(1)
        model = torch.nn.Linear(width, width, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            loss = (model(torch.randn(4, width)) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    found = campaign.measure(build(256), campaign.Setup(lambda: build(256)), **QUICK)
    control, treatment = (found.evidence.probe.arm(role).losses for role in ("control", "treatment"))
    assert control == treatment, "the same weights and the same random batches, pickled or built"
    assert len(set(control)) == len(control) > 1
    for one in found.evidence.rounds:
        assert {trial.restart_loss for trial in one.trials} == {control[0]}
        # A float32 weight and its gradient of 256 x 256 are there at once.
        assert all(trial.memory.live_peak_bytes >= 2 * 4 * 256 * 256 for trial in one.trials)


# The ratio is wanted, whoever else is on this machine.
LENIENT = {"contention_limit": 100.0, "steal_limit": 1.0, "invalid_share_limit": 0.9}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_interval_covers_the_ratio_of_the_work(here):
    import numpy

    matrix = numpy.ones((96, 96))

    def times(count):
        def step():
            value = matrix
            for _ in range(count):
                value = (value @ matrix) * (1 / 96)
            return float(value[0, 0])

        return step

    found = campaign.measure(times(120), times(60), name=("twice", "once"), settings=LENIENT)
    assert found.interval is not None, str(found)
    low, high = found.interval
    # 120 products against 60, and one allocation and a call each, which take less than 1 % of either.
    assert low <= 2.0 * 1.01 and high >= 2.0 * 0.99, str(found)
    assert found.verdict == "accept", str(found)
    assert found.decision.verdict.suspect, "twice as fast on a whole step is confirmed twice"
