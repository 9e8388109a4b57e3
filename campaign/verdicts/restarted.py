"""What was timed is what was probed: after its last block each trial of a valid round is put back to its start in the
same process and repeats step 1, which must be step 1 of the same arm's probe. Otherwise: invalid, `restarted`.

On a CPU with one thread and one rank it must be equal to the bit (loss, gradient norm and the gradients' digest, so far
as the workload tells them). On a device, with several threads or ranks, the order of sums may differ from run to run:
where the digests differ, loss and gradient norm must be within 0.1 %. Of a `loss` claim the loss alone is looked at,
and must be within its bound. The few steps after it are those whose memory is measured, and must not be others than
those that were timed: the loss of the last of them must be within 10 % of control's in the same round (up to 4.8 % was
seen of honest edits), or the wider bound of a `loss` claim, and equal to it where the claim is bitwise and there is one
rank. A workload that cannot be restarted is not checked, and a warning says so; an edit that takes the restart away is
wrong. The numbers of threads and ranks are what control says.
"""

from __future__ import annotations

from campaign.records import INVALID, ArmProbe, ParityClaim, Round, Trial, Verdict
from campaign.records.plan import NOT_COMPARED
from campaign.traits import ranks, threads
from campaign.verdicts._case import Case

ORDER = 56
TOLERANCE = 1e-3
WEIGHED_TOLERANCE = 0.10


def rule(case: Case) -> Verdict | None:
    probe = case.evidence.probe
    claim = case.plan.hypothesis.parity
    if case.plan.rules < 2 or probe is None or claim.kind == NOT_COMPARED:
        return None
    for one in case.sorted.valid():
        control = one.trial("control")
        to_the_bit = case.plan.device == "cpu" and threads(control) == ranks(control.facts) == 1
        for trial in one.trials:
            wrong = differs(trial, probe.arm(trial.arm), claim, to_the_bit=to_the_bit)
            if control.restart_sha256 and not trial.restart_sha256:
                wrong = "control has a restart() and it has none"
            if wrong:
                return case.verdict(
                    INVALID,
                    "restarted",
                    f"round {one.id}: {trial.arm}, restarted after it was timed, does not repeat step 1 of its probe:"
                    f" {wrong}",
                    "look for what the workload keeps through restart(), or does otherwise when it is timed",
                )
        weighed = _weighed(one, claim)
        if weighed:
            return case.verdict(
                INVALID,
                "restarted",
                f"round {one.id}: {weighed}: the memory that was measured is not that of the step",
                "look for what the workload does otherwise after a restart, or while its memory is measured",
            )
    return None


def differs(trial: Trial, probe: ArmProbe, claim: ParityClaim, *, to_the_bit: bool) -> str:
    """How the restarted step 1 differs from the probe's, in words; empty when it does not, or was not taken."""
    if not trial.restart_sha256:
        return ""
    loss, norm = (wanted[0] if wanted else None for wanted in (probe.losses, probe.gradient_norms))
    told = [("loss", trial.restart_loss, loss)]
    told += [("gradient norm", trial.restart_gradient_norm, norm)] if claim.kind != "loss" else []
    for what, found, wanted in told:
        if found is None and wanted is not None:
            return f"the probe told its {what}, and it does not"
    pairs = [(what, found, wanted) for what, found, wanted in told if found is not None and wanted is not None]
    same_gradients = trial.restart_sha256 == probe.gradients_sha256
    if same_gradients and trial.restart_loss == loss:
        return ""
    said = ", ".join(f"{what} {found:.9g} against {wanted:.9g}" for what, found, wanted in pairs)
    if to_the_bit and claim.kind != "loss":
        digests = f"gradients {trial.restart_sha256[:12]} against {probe.gradients_sha256[:12]}"
        return ", ".join(filter(None, (said, "" if same_gradients and said else digests)))
    limit = max(TOLERANCE, claim.bound) if claim.kind == "loss" else TOLERANCE
    near = all(abs(found - wanted) <= limit * abs(wanted) for _, found, wanted in pairs)
    return "" if near else f"{said}; the limit is {limit:.1%}"


def _weighed(one: Round, claim: ParityClaim) -> str:
    control, treatment = (one.trial(arm).weighed_loss for arm in ("control", "treatment"))
    if control is None or treatment is None:
        return ""
    limit = max(WEIGHED_TOLERANCE, claim.bound if claim.kind == "loss" else 0.0)
    if claim.kind == "bitwise" and ranks(one.trial("control").facts) == 1:
        limit = 0.0
    if abs(treatment - control) <= limit * abs(control):
        return ""
    return f"in the step whose memory was measured treatment's loss is {treatment:.9g}, control's {control:.9g}"
