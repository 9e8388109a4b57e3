"""What was timed is what was probed: after its last block each trial of a valid round is put back to its start in the
same process and repeats step 1, which must be step 1 of the same arm's probe. Otherwise: invalid, `restarted`.

On a CPU with one thread it must be equal to the bit (loss, gradient norm and the gradients' digest). On a device or
with several threads the order of sums may differ from run to run: where the digests differ, loss and gradient norm must
be within 0.1 %. The few steps after it are those whose memory is measured, and must not be others than those that were
timed: the loss of the last of them must be within 10 % of control's in the same round (up to 4.8 % was seen of honest
edits), equal to it where the claim is bitwise. A workload that cannot be restarted is not checked, and a warning says
so; an edit that takes the restart away is wrong. The number of threads is what control says.
"""

from __future__ import annotations

from campaign.records import INVALID, ArmProbe, Round, Trial, Verdict
from campaign.stability import threads
from campaign.verdicts._case import Case

ORDER = 56
TOLERANCE = 1e-3
WEIGHED_TOLERANCE = 0.10


def rule(case: Case) -> Verdict | None:
    probe = case.evidence.probe
    if case.plan.rules < 2 or probe is None:
        return None
    for one in case.sorted.valid():
        control = one.trial("control")
        to_the_bit = case.plan.device == "cpu" and threads(control) == 1
        for trial in one.trials:
            wrong = differs(trial, probe.arm(trial.arm), to_the_bit=to_the_bit)
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
        weighed = _weighed(one, case.plan.hypothesis.parity.kind)
        if weighed:
            return case.verdict(
                INVALID,
                "restarted",
                f"round {one.id}: {weighed}: the memory that was measured is not that of the step",
                "look for what the workload does otherwise after a restart, or while its memory is measured",
            )
    return None


def differs(trial: Trial, probe: ArmProbe, *, to_the_bit: bool) -> str:
    """How the restarted step 1 differs from the probe's, in words; empty when it does not, or was not taken."""
    if trial.restart_loss is None or trial.restart_gradient_norm is None or not probe.losses:
        return ""
    if trial.restart_sha256 == probe.gradients_sha256 and trial.restart_loss == probe.losses[0]:
        return ""
    said = (
        f"loss {trial.restart_loss:.9g} against {probe.losses[0]:.9g}, gradient norm {trial.restart_gradient_norm:.9g}"
        f" against {probe.gradient_norms[0]:.9g}"
    )
    if to_the_bit:
        return f"{said}, gradients {trial.restart_sha256[:12]} against {probe.gradients_sha256[:12]}"
    near = _near(trial.restart_loss, probe.losses[0]) and _near(trial.restart_gradient_norm, probe.gradient_norms[0])
    return "" if near else f"{said}; the limit is {TOLERANCE:.1%}"


def _weighed(one: Round, kind: str) -> str:
    control, treatment = (one.trial(arm).weighed_loss for arm in ("control", "treatment"))
    if control is None or treatment is None:
        return ""
    if abs(treatment - control) <= (0.0 if kind == "bitwise" else WEIGHED_TOLERANCE * abs(control)):
        return ""
    return f"in the step whose memory was measured treatment's loss is {treatment:.9g}, control's {control:.9g}"


def _near(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= TOLERANCE * abs(wanted)
