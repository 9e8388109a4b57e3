"""What is declared before the first timing: the hypothesis, the arms, the protocol, the plan."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

PARITY_KINDS = ("bitwise", "rounding", "precision", "loss")
REFERENCED = ("rounding", "precision")  # claims that are judged by a reference arm, which not every workload has
NOT_COMPARED = "none"  # the kind of a comparison whose steps tell nothing
LOSS_BOUND = 0.02
CHANGES = ("appears", "vanishes", "rises", "falls")
CLOCKS = ("wall", "cpu")
STAGES = ("screen", "confirm", "reconfirm")
FASTER, SLOWER = "faster", "slower"
ASKS = (FASTER, SLOWER)
CODE_EDITS = ("ref", "patch", "worktree")
# What a plan's evidence holds and which gates judge it; one of an earlier number is judged by the gates of its time.
# 1: until idle processor time, the last timed step's check, the repeat after a restart and per-parameter parity were
# recorded. 2: until a try asked wall time by its own limits.
RULES = 3
# Limits of what is more random than a whole gradient: see `ParityClaim`.
EXACT_MULTIPLE = 10.0
OWN_MULTIPLE = 2.0
LOSS_SLACK, NORM_SLACK = 0.05, 1.5


@dataclass(frozen=True)
class Edit:
    """What changes: config overrides in Hydra's spelling, environment variables of the trial's process, and code.

    Of code there is at most one: `ref` (a branch, tag or commit: what it adds to its merge base with HEAD), `patch` (a
    file of the project that `git apply` reads) or `worktree` ('dirty': the working tree against HEAD).
    """

    overrides: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    ref: str = ""
    patch: str = ""
    worktree: str = ""

    @property
    def code(self) -> str:
        """'ref=my-branch', 'patch=fix.diff' or 'worktree=dirty'; empty where no code changes."""
        return next((f"{kind}={getattr(self, kind)}" for kind in CODE_EDITS if getattr(self, kind)), "")

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that it changes, as it was written."""
        variables = (f"{name}={value}" for name, value in self.environment.items())
        return (*self.overrides, *variables, *((self.code,) if self.code else ()))


@dataclass(frozen=True)
class Part:
    """One edit of a set: a hypothesis that is several edits, measured as one and taken apart when accepted."""

    name: str
    edit: Edit


@dataclass(frozen=True)
class ExpectedChange:
    """What an untimed probe must see for the edit to count as engaged.

    `counter` is counted per step: `op:kernels::prenorm_cpu` (a dispatched operator, overload left out), `kernel:NAME`
    (a device kernel whose name contains NAME), `gemm:DTYPE` (matrix products by the dtype of their first operand),
    `compile:graphs` (graphs that torch.compile built), or it is static evidence, `static:KERNEL:FIELD` (a field of the
    compiled kernel's resource report for the arm's device). `change` is one of `CHANGES`; `control` and `treatment`
    are the predicted counts per step, where the hypothesis dares to say them.
    """

    counter: str
    change: str
    control: float | None = None
    treatment: float | None = None


@dataclass(frozen=True)
class ParityClaim:
    """How near the treatment's training step must stay to control's. `parity.py` has the formulas.

    bitwise: losses, gradient norms and gradients of every probed step equal to the bit.
    rounding: with quantization off, relative gradient distance to the reference at most `bound`; as configured,
        distance at most `factor` times control's own distance to the reference.
    precision: as configured, distance at most `factor` times control's own.
    loss: no reference; each probed step's loss within `bound` of control's, relative (by default: `LOSS_BOUND`).

    The limits of single parameters, losses and gradient norms follow from these two numbers (`verdicts/parity.py` says
    why they are what they are).
    """

    kind: str
    bound: float = 1e-4
    factor: float = 1.25

    @property
    def exact_limit(self) -> float:
        """The largest error of one parameter, loss or norm that order of summation explains; 0 outside rounding."""
        return EXACT_MULTIPLE * self.bound if self.kind == "rounding" else 0.0

    def parameter_limit(self, expected: float) -> float:
        """The largest error of a parameter as configured; `expected` is control's own and its noise."""
        return max(self.exact_limit, self.factor * OWN_MULTIPLE * expected)

    def loss_limit(self, own: float, distance: float) -> float:
        """The largest relative difference of a loss; `own` is control's largest, `distance` control's."""
        return max(self.exact_limit, self.factor * (OWN_MULTIPLE * own + LOSS_SLACK * distance))

    def norm_limit(self, own: float, distance: float) -> float:
        """The same for a gradient norm."""
        return max(self.exact_limit, self.factor * (OWN_MULTIPLE * own + NORM_SLACK * distance))


@dataclass(frozen=True)
class Hypothesis:
    """An edit with its claim, its predictions and its guardrails. Ratios are control/treatment seconds.

    `ceiling_ratio` is the most that the edit can win on the whole step by Amdahl's law or the memory floor of a
    profile; None while no profile says. `parts` are the edits of a set, of which `edit` is the whole; empty for a
    single edit. `asks` is the question: whether the edit is faster, which may end in an accept, or only whether it is
    slower (`campaign try`), which joins no stack.
    """

    name: str
    claim: str
    mechanism: str
    acts_on: str
    edit: Edit
    predicted_ratio: float
    parity: ParityClaim
    predicted_evidence: tuple[ExpectedChange, ...] = ()
    memory_growth_limit: float = 0.02
    needs: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    null: bool = False
    ceiling_ratio: float | None = None
    parts: tuple[Part, ...] = ()
    asks: str = FASTER


@dataclass(frozen=True)
class Code:
    """Files that an arm runs in place of the project's own: those of `commit` with `patches` applied in order, each the
    SHA-256 of a patch file kept beside the ledger (`raw/SHA256.patch`)."""

    commit: str
    patches: tuple[str, ...] = ()

    def __str__(self) -> str:
        """'0123456789ab', '0123456789ab + fedcba987654'."""
        return " + ".join(one[:12] for one in (self.commit, *self.patches))


@dataclass(frozen=True)
class Arm:
    """One fully resolved configuration: `target(**config)` builds the workload in the trial's process. Without `code`
    it runs the project's files as they are."""

    role: str
    name: str
    target: str
    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    code: Code | None = None

    @property
    def hash(self) -> str:
        """SHA-256 of what decides what runs: target, config, environment and code, not role or name."""
        parts: list[Any] = [self.target, self.config, self.environment]
        if self.code is not None:
            parts.append([self.code.commit, *self.code.patches])
        return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class Protocol:
    """How rounds are run and when to stop. Shares are fractions; `alpha` and `beta` are one-sided.

    A speedup above `suspect_ratio` is confirmed twice. `arms` is 4 to time root and solo beside control and treatment
    where the stack is not empty, 2 for control and treatment alone. `contention_limit` is None where steps wait by
    design. `lead_steps` or one more, drawn for
    each pair, are stepped before each block: they find the caches as the other arm left them.
    """

    name: str
    decisive: bool
    clock: str
    looks: tuple[int, ...]
    alpha: float
    beta: float
    alpha_split: tuple[float, ...]
    beta_split: tuple[float, ...]
    min_effect: float
    pairs: int
    block_steps: int
    block_minimum_seconds: float
    warmup_minimum_steps: int
    warmup_window_steps: int
    warmup_tolerance: float
    warmup_limit_steps: int
    confirm_rounds: int
    confirm_alpha: float
    invalid_share_limit: float
    contention_limit: float | None
    gate_alpha: float
    memory_min_effect: float
    memory_min_bytes: int
    memory_noninferiority: float
    memory_margin: float
    probe_steps: int
    start_deadline_seconds: float
    reply_deadline_seconds: float
    seed: int
    steal_limit: float = 0.05
    suspect_ratio: float = 1.5
    arms: int = 2
    lead_steps: int = 0


@dataclass(frozen=True)
class Plan:
    """Registered in the ledger before the first timing; a verdict may use nothing that is not declared here.

    `threshold` is d: the larger of the protocol's `min_effect` and what this machine's measured floor resolves;
    `floor_id` names the decision it came from, empty when the floor was never measured here; `memory_floor_bytes` is
    the range of peaks that its equal arms showed (0 without a floor). `attempt` j on the same
    candidate has its alpha halved j-1 times (already applied in `alpha`). `stack` holds the accepted hypotheses that
    control includes. `fingerprint` is what must be equal for two rounds to be comparable. `rules` is the `RULES` that
    it was registered under. `root` and `solo` (root + the edit) are timed in the same rounds where the stack is not
    empty; `two_arms` says why they are not, empty where they are.
    """

    id: str
    campaign: str
    workload: str
    device: str
    hypothesis: Hypothesis
    control: Arm
    treatment: Arm
    protocol: Protocol
    stack: tuple[str, ...]
    attempt: int
    alpha: float
    threshold: float
    floor_id: str
    fingerprint: dict[str, Any]
    code: str
    source: dict[str, Any]
    machine_line: str
    command: str
    registered_at: str
    memory_floor_bytes: int = 0
    rules: int = 1
    root: Arm | None = None
    solo: Arm | None = None
    two_arms: str = ""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Every arm of a round: control and treatment, then root and solo where they are timed."""
        return (self.control, self.treatment, *(arm for arm in (self.root, self.solo) if arm is not None))

    @property
    def base(self) -> str:
        """The arm that gates look at."""
        return self.control.role
