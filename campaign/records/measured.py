"""What the machine did: blocks, trials, rounds, probes, and the evidence that a verdict may look at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from campaign.records.plan import Plan

TRIAL_FAILURES = ("crashed", "out_of_memory", "killed", "hung", "garbage", "unavailable", "interrupted", "wrong_copy")


@dataclass(frozen=True)
class Block:
    """A few consecutive whole steps of one arm, timed as one.

    `position` is the block's place in the round's order (0-based), `pair` the pair it belongs to. `device_seconds`
    is event time, None without a device. `involuntary_switches` counts context switches forced on the process.
    `idle_cpu_seconds` is the CPU time of the process and its descendants from the end of the block before to the start
    of this one, when it was the other arm's turn. `loss` and `gradient_norm` are of the block's last step, read after
    its clock has stopped. `turn_seconds` is the whole turn, from the command to the answer, on the clock of the process
    that asks. These are None in ledgers that did not record them. The arm took `lead_steps` steps in the same turn
    before the block, timed apart and in no effect.
    """

    arm: str
    position: int
    pair: int
    steps: int
    tokens: int
    wall_seconds: float
    cpu_seconds: float
    device_seconds: float | None
    involuntary_switches: int
    idle_cpu_seconds: float | None = None
    loss: float | None = None
    gradient_norm: float | None = None
    turn_seconds: float | None = None
    lead_steps: int = 0
    lead_wall_seconds: float = 0.0
    lead_cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Memory:
    """Peak memory of one untimed step, in bytes. On CPU `live_peak_bytes` decides and `process_peak_bytes` (VmHWM)
    stands beside. On CUDA it is peak allocated plus what captured graphs keep for their own use (`graph_pool_bytes`,
    which the allocator does not count as allocated), with `reserved_peak_bytes` and `device_used_bytes` beside."""

    live_peak_bytes: int
    process_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    device_used_bytes: int | None = None
    graph_pool_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True)
class Trial:
    """One fresh process that ran one arm. `status` is `ok` or one of `TRIAL_FAILURES`; `wrong_copy`: an arm with code
    of its own imported files of the project itself.

    `log` is the path of its captured output beside the ledger. `warmup_seconds` are the warm-up steps' times on the
    deciding clock, `steady` whether they settled before the cap. `recompiled` counts compilations inside the timed
    window. `loss` and `gradient_norm` are of the last timed step. The `restart_` fields are of step 1 again, after the
    clock has stopped and the workload was put back to its start in the same process (`restart_sha256` digests its
    gradients as `ArmProbe.gradients_sha256` does); None and empty where the workload has no `restart()`. `unmoved` are
    parameters that one more step after the last timed one left as they were. `weighed_loss` is of
    the last step whose memory was measured, a few steps after the restart.
    """

    id: str
    arm: str
    status: str
    message: str = ""
    remedy: str = ""
    log: str = ""
    start_seconds: float = 0.0
    warmup_seconds: tuple[float, ...] = ()
    steady: bool = False
    memory: Memory | None = None
    loss: float | None = None
    gradient_norm: float | None = None
    recompiled: int = 0
    fingerprint: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    restart_loss: float | None = None
    restart_gradient_norm: float | None = None
    restart_sha256: str = ""
    unmoved: tuple[str, ...] = ()
    weighed_loss: float | None = None


@dataclass(frozen=True)
class Surroundings:
    """What else the machine did while a round was timed; None where this machine cannot say.

    `load` is the one-minute load average, `pressure` the PSI `cpu some avg10` share, `steal` the share of the window
    taken by the hypervisor, `foreign` the processes seen on the device that are not ours, `throttled` the clock event
    reasons seen.
    """

    load: float | None = None
    pressure: float | None = None
    steal: float | None = None
    foreign: tuple[str, ...] = ()
    throttled: tuple[str, ...] = ()


@dataclass(frozen=True)
class Round:
    """One set of trials started together whose blocks were interleaved. `order` is the arms' turn order in full.

    `blocks_file` is the raw block times' path beside the ledger, named by its SHA-256; `blocks` holds its rows when
    loaded. Not `together`: the arms did not fit side by side, so whole processes alternated. `code` is the hash of
    the code that ran (see `provenance`). `timed_seconds` is wall time inside blocks.
    """

    id: str
    stage: str
    index: int
    order: tuple[str, ...]
    trials: tuple[Trial, ...]
    surroundings: Surroundings
    code: str
    wall_seconds: float
    timed_seconds: float
    blocks_file: str = ""
    together: bool = True
    blocks: tuple[Block, ...] = ()

    def trial(self, arm: str) -> Trial:
        """The trial that ran `arm` in this round."""
        return next(trial for trial in self.trials if trial.arm == arm)

    def only(self, arms: Collection[str]) -> Round:
        """This round with the trials, turns and blocks of `arms` alone; itself where it holds no others."""
        if all(trial.arm in arms for trial in self.trials) and all(role in arms for role in self.order):
            return self
        return replace(
            self,
            order=tuple(role for role in self.order if role in arms),
            trials=tuple(trial for trial in self.trials if trial.arm in arms),
            blocks=tuple(block for block in self.blocks if block.arm in arms),
        )


@dataclass(frozen=True)
class ArmProbe:
    """One untimed look at an arm: per-step losses and gradient norms (empty where it tells none), the digest of the
    step-1 gradients and one of those of the later steps, and how often each operator, device kernel and kind of matrix
    product ran in one more step. `static` are the resource reports of the kernels that its configuration selects,
    compiled and not run; they never mix with `counters`."""

    arm: str
    status: str
    losses: tuple[float, ...] = ()
    gradient_norms: tuple[float, ...] = ()
    gradients_sha256: str = ""
    counters: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    remedy: str = ""
    log: str = ""
    static: tuple[dict[str, Any], ...] = ()
    later_gradients_sha256: str = ""


@dataclass(frozen=True)
class ParameterError:
    """How far one arm's step-1 gradient of one parameter is from the reference's.

    `error` is ||g - g_reference|| / ||g_reference||, `cosine` the cosine between the two, `share` the parameter's
    part of the whole reference gradient, ||g_reference of it|| / ||g_reference||. `control_error` is control's own
    `error` at the same parameter, `noise` the one that it would have if control's total distance lay evenly over all
    elements (`parity.py` has the formula).
    """

    name: str
    error: float
    cosine: float
    share: float
    control_error: float
    noise: float


@dataclass(frozen=True)
class ArmParity:
    """One arm against the reference arm. Shape [steps]: relative differences of loss and gradient norm at each probed
    step, |a - reference| / |reference|. `worst` is the parameter whose error is the largest multiple of what the
    claim allows it. `silent` are parameters whose gradient is all zero here and not in the reference."""

    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    worst: ParameterError | None = None
    silent: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParityMeasure:
    """Relative L2 distances between gradients of step 1: ||g - g_reference|| / ||g_reference||.

    `exact_distance` is the treatment's with quantization off; `control_distance` and `treatment_distance` are as
    configured. `bitwise` says that losses and gradients of control and treatment are equal to the bit, and that there
    were some. `loss_difference` is the largest |treatment - control| over the probed steps, None where no losses were
    told. `message` says why distances are missing. `control`, `treatment` and `exact` say more of each distance, and
    are missing with it.

    Without a reference: `loss_apart` and `norm_apart` have shape [steps], |treatment - control| / |control| of losses
    and gradient norms, empty where they cannot be compared; `gradient_distance` is treatment's to control. `untold` is
    what neither arm tells, of 'loss', 'gradient norm' and 'gradients'; `unlike` are sentences about what one tells and
    the other does not.
    """

    bitwise: bool
    loss_difference: float | None
    control_distance: float | None = None
    treatment_distance: float | None = None
    exact_distance: float | None = None
    message: str = ""
    control: ArmParity | None = None
    treatment: ArmParity | None = None
    exact: ArmParity | None = None
    loss_apart: tuple[float, ...] = ()
    norm_apart: tuple[float, ...] = ()
    gradient_distance: float | None = None
    untold: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """The parity and engagement evidence, taken before the first timing. `parity` is None when an arm failed."""

    arms: tuple[ArmProbe, ...]
    parity: ParityMeasure | None
    wall_seconds: float = 0.0

    def arm(self, role: str) -> ArmProbe:
        """The probe of the arm with this role."""
        return next(probe for probe in self.arms if probe.arm == role)


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict may look at: the registered plan, the probe, and every round, valid or not."""

    plan: Plan
    probe: Probe | None
    rounds: tuple[Round, ...] = ()
