"""What was concluded: effects, the memory comparison, the verdict, and the decision that the ledger keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

ACCEPT = "accept"
REJECT = "reject"
INCONCLUSIVE = "inconclusive"
INVALID = "invalid"
UNAVAILABLE = "unavailable"
VERDICTS = (ACCEPT, REJECT, INCONCLUSIVE, INVALID, UNAVAILABLE)


@dataclass(frozen=True)
class Effect:
    """A speed ratio (control/treatment seconds, above 1 is faster) over rounds.

    `ratio` is exp(mean of the per-round medians of log paired ratios), `low` and `high` its two-sided 95 % Student-t
    interval. `decision_low` and `decision_high` are the one-sided bounds at the alpha and beta of the look that was
    taken. `total_ratio` is total control seconds over total treatment seconds per token. `round_ratios` are the
    per-round medians as ratios.
    """

    clock: str
    ratio: float
    low: float
    high: float
    decision_low: float
    decision_high: float
    rounds: int
    sd_log: float
    total_ratio: float
    round_ratios: tuple[float, ...]
    control_step_seconds: float
    treatment_step_seconds: float
    control_tokens_per_second: float
    treatment_tokens_per_second: float
    control_p99_seconds: float
    treatment_p99_seconds: float
    control_max_seconds: float
    treatment_max_seconds: float


@dataclass(frozen=True)
class MemoryChange:
    """Peak memory of treatment against control. `ratio` is treatment/control bytes; `exact` says that every round
    repeated both values exactly, otherwise `low` and `high` bound the ratio (95 %, t over rounds)."""

    control_bytes: int
    treatment_bytes: int
    ratio: float
    low: float
    high: float
    exact: bool
    saved: bool
    grown: bool


@dataclass(frozen=True)
class Contrast:
    """A linear contrast of per-round log times as a ratio, with its two-sided 95 % Student-t interval over rounds.
    Above 1 is faster; of an interaction, above 1 is more than the product. `sd_log` is the scatter of the rounds."""

    ratio: float
    low: float
    high: float
    rounds: int
    sd_log: float


@dataclass(frozen=True)
class ByteChange:
    """A linear contrast of peak bytes; above 0 is more memory. `exact` says that every round repeated every peak of it
    exactly, and then `low` and `high` are `bytes`; otherwise they bound it (95 %, t over rounds)."""

    bytes: int
    low: int
    high: int
    exact: bool


@dataclass(frozen=True)
class Combined:
    """An edit alone and together with the stack, from the published rounds, which held four arms: `isolated` is root
    against solo, `cumulative` root against treatment (measured, never multiplied), `interaction` marginal over
    isolated. `word` is what its sign and interval earn (`interactions.words`)."""

    marginal: Contrast
    isolated: Contrast
    cumulative: Contrast
    interaction: Contrast
    word: str
    marginal_bytes: ByteChange | None = None
    isolated_bytes: ByteChange | None = None
    cumulative_bytes: ByteChange | None = None
    interaction_bytes: ByteChange | None = None


@dataclass(frozen=True)
class Floor:
    """What this machine resolves on a workload, from A/A rounds on the same clock.

    `resolves` maps a number of rounds to the smallest effect (a fraction) found with 95 % power at alpha .01.
    """

    clock: str
    rounds: int
    between_rounds_sd: float
    within_round_sd: float
    resolves: dict[str, float]
    memory_range_bytes: int


@dataclass(frozen=True)
class Need:
    """Not decided yet: take valid rounds of `stage` until there are `rounds` of them."""

    stage: str
    rounds: int


@dataclass(frozen=True)
class Verdict:
    """What the evidence says: one of `VERDICTS`, a reason code, a sentence, and what to do next.

    `effect` is the published one (from confirmation rounds where there are any), `screening` the one that stopped the
    looks, `beside` the effect on the clock that does not decide. `invalid_rounds` were kept, not counted. `suspect`
    says why a speedup is too good to be taken on one confirmation; empty for any other. `combined` is None where the
    published rounds did not hold root and solo.
    """

    verdict: str
    reason: str
    sentence: str
    remedy: str = ""
    effect: Effect | None = None
    screening: Effect | None = None
    beside: Effect | None = None
    memory: MemoryChange | None = None
    floor: Floor | None = None
    look: int = 0
    alpha_spent: float = 0.0
    valid_rounds: int = 0
    invalid_rounds: int = 0
    warnings: tuple[str, ...] = ()
    suspect: str = ""
    combined: Combined | None = None


@dataclass(frozen=True)
class Decision:
    """A verdict written in the ledger, with what a reader of the row needs and nothing that cannot be recomputed."""

    id: str
    plan_id: str
    sequence: int
    hypothesis: str
    claim: str
    workload: str
    device: str
    predicted_ratio: float
    verdict: Verdict
    stack: tuple[str, ...]
    overrides: tuple[str, ...]
    attempt: int
    parity: str
    engagement: str
    low_precision: str
    machine_line: str
    command: str
    decided_at: str
    wall_seconds: float
    timed_seconds: float
    log: str = ""
    evidence: dict[str, str] = field(default_factory=dict)
