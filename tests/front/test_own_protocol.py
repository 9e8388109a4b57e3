"""What a training script of one's own is measured by: its protocol, and what may be claimed of it."""

from __future__ import annotations

import pytest

from campaign.config import load
from campaign.errors import BadInput, DoesNotFit
from campaign.records import ParityClaim, Protocol, from_json, to_json

SCRIPT = """
_target_: campaign.launch.{kind}
name: mine
device: {device}
command: python train.py
flags: {{lr: 0.1, attention: eager}}
flag: "--{{name}}={{value}}"
directory: .
environment: {{}}
"""
STEPS = "steps: {from: output, pattern: 'step (?P<step>\\d+)'}\ntokens: 0\n"
EDIT = "workload.flags.attention=sdpa"
MINE = ["workload=mine", "protocol=own", "hypothesis=sdpa"]


@pytest.fixture
def mine(add, add_hypothesis):
    """A project with a launched script and an edit of one of its flags that claims `rounding`; `mine('Command')` makes
    it one that is only watched, `device='cuda'` one on a GPU. A file that was read once is not read again."""

    def write(kind="Script", device="cpu", more="", name="mine", threads=""):
        steps = STEPS if kind == "Command" else ""
        add(f"workload/{name}.yaml", SCRIPT.format(kind=kind, device=device) + steps + threads)
        add_hypothesis("sdpa", EDIT, more=more)

    return write


def test_the_protocol_for_own_scripts_is_the_standard_one_with_room_for_what_nobody_knows(mine, project):
    mine()
    found = load(project, [*MINE, "hypothesis.parity.kind=loss"]).protocol
    standard = load(project, [*MINE, "protocol=standard", "hypothesis.parity.kind=loss"]).protocol
    assert (found.name, found.clock, found.probe_steps, found.decisive) == ("own", "wall", 8, True)
    assert (found.warmup_tolerance, found.warmup_limit_steps) == (0.10, 100)
    assert (found.start_deadline_seconds, found.reply_deadline_seconds) == (900.0, 600.0)
    for same in ("min_effect", "arms", "looks", "alpha_split", "pairs", "confirm_rounds", "contention_limit"):
        assert getattr(found, same) == getattr(standard, same), same
    assert (found.min_effect, found.arms) == (0.03, 4)
    mine(device="cuda", name="on_gpu")
    found = load(project, ["workload=on_gpu", *MINE[1:], "hypothesis.parity.kind=loss"]).protocol
    assert (found.min_effect, found.pairs, found.start_deadline_seconds) == (0.01, 10, 1800.0)


def test_no_limit_on_waiting_is_declared_with_null_and_survives_the_ledger(mine, project):
    mine()
    words = [*MINE, "hypothesis.parity.kind=loss"]
    waiting = load(project, [*words, "protocol.contention_limit=null"]).protocol
    assert waiting.contention_limit is None and load(project, words).protocol.contention_limit == 1.3
    assert from_json(Protocol, to_json(waiting)) == waiting
    with pytest.raises(BadInput, match="above 1, or null for steps that wait by design"):
        load(project, [*words, "protocol.contention_limit=1"])


def test_a_claim_about_losses_has_a_bound_that_fits_losses_unless_it_says_one(mine, project):
    mine()
    assert load(project, [*MINE, "hypothesis.parity.kind=loss"]).hypothesis.parity == ParityClaim("loss", bound=0.02)
    wider = [*MINE, "hypothesis.parity.kind=loss", "+hypothesis.parity.bound=0.1"]
    assert load(project, wider).hypothesis.parity.bound == 0.1
    assert load(project, ["workload=reference_cpu", "hypothesis=prenorm_fusion"]).hypothesis.parity.bound == 1e-4


@pytest.mark.parametrize("kind", ["Script", "Command"])
@pytest.mark.parametrize("claim", ["rounding", "precision"])
def test_a_command_has_no_reference_and_a_claim_that_needs_one_is_refused_before_anything_starts(
    mine, project, kind, claim
):
    mine(kind)
    with pytest.raises(DoesNotFit, match=f"parity.kind={claim}, which compares with a reference step") as refused:
        load(project, [*MINE, f"hypothesis.parity.kind={claim}"])
    for word in refused.value.remedy.split(", or "):
        assert load(project, [*MINE, word]).workload == "mine"


def test_what_cannot_be_counted_is_not_predicted_of_a_watched_command(mine, project):
    evidence = "  predicted_evidence: [{counter: op:aten::mm, change: falls}]\n"
    mine("Command", more=evidence)
    words = [*MINE, "hypothesis.parity.kind=loss"]
    with pytest.raises(DoesNotFit, match="op:aten::mm, which nobody can count") as refused:
        load(project, words)
    assert load(project, [*words, refused.value.remedy.split(", or ")[0]]).hypothesis.predicted_evidence == ()
    mine("Script", more=evidence, name="gated")
    assert load(project, ["workload=gated", *words[1:]]).hypothesis.predicted_evidence


def test_cpu_time_decides_for_a_command_only_where_its_threads_are_declared(mine, project):
    mine()
    words = [*MINE, "hypothesis.parity.kind=loss", "protocol.clock=cpu"]
    with pytest.raises(BadInput, match="how many the command runs is not declared"):
        load(project, words)
    mine(name="one_thread", threads="threads: 1\n")
    assert load(project, ["workload=one_thread", *words[1:]]).protocol.clock == "cpu"
