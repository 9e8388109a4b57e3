"""A question of feasibility and its answer, as records. Rates are tokens a second while training steps run, shares and
efficiencies fractions of 1, ratios above 1 faster. What is not known is None."""

from __future__ import annotations

from dataclasses import dataclass

NOW, IF_IDEAS_WIN, NOT_HERE = "reachable now", "reachable if these ideas win", "not on this device"
PERIODIC = ("optimizer", "evaluation", "checkpoint", "input")  # what a timed step may leave out
OTHER = "other"


@dataclass(frozen=True)
class Overhead:
    """A part of the wall time in which no training step runs. `item` is one of PERIODIC, or OTHER."""

    item: str
    share_of_wall_time: float


@dataclass(frozen=True)
class Attention:
    """The layers that attend over the whole context; `width` is heads times the size of a head."""

    context_tokens: float
    layers: int
    width: float


@dataclass(frozen=True)
class Goal:
    """What is wanted. `tokens_per_parameter` is None where the budget was given outright. `scaling_efficiency` is what
    each of several devices does of what it would do alone."""

    token_budget: float
    days: float
    parameters: float | None = None
    tokens_per_parameter: float | None = None
    devices: int = 1
    scaling_efficiency: float = 1.0
    overheads: tuple[Overhead, ...] = ()
    attention: Attention | None = None


@dataclass(frozen=True)
class Rate:
    """Tokens a second of one device. `name` is "given", "root" or "head"; `clock` the clock that it was measured on, ""
    where nothing says; `source` where it is from."""

    name: str
    tokens_per_second: float
    clock: str
    source: str


@dataclass(frozen=True)
class Roof:
    """The most that one device does. `kind` is "datasheet", "given" or "measured" (by a matmul and a copy here, which
    another matmul may exceed)."""

    name: str
    precision: str
    flops_per_second: float
    dram_bytes_per_second: float | None
    kind: str
    source: str


@dataclass(frozen=True)
class Utilisation:
    """Model FLOPs a second over those of the roof, on each device: as it runs at a rate, or as the goal requires."""

    roof: Roof
    now: float
    required: float


@dataclass(frozen=True)
class Pace:
    """What one rate comes to on all the devices. `gap` is required over it: above 1 it is too slow. `lower_bound_days`
    counts the overheads that were given and nothing else."""

    rate: Rate
    all_devices_tokens_per_second: float
    gap: float
    lower_bound_days: float
    utilisations: tuple[Utilisation, ...]


@dataclass(frozen=True)
class FamilyCeiling:
    """`charged_share` is its part of the range, an instant shared by several families in equal parts."""

    family: str
    title: str
    charged_share: float
    share_of_range: float  # the time in which only it ran
    removed: float  # the ratio if it cost nothing


@dataclass(frozen=True)
class OpenIdea:
    """A hypothesis that was neither struck out, accepted nor rejected. `counted` is what it predicts, but no more than
    its ceiling; `ceiling` None where the profile does not bound it."""

    hypothesis: str
    acts_on: str
    matched: tuple[str, ...]
    predicted: float
    ceiling: float | None
    counted: float


@dataclass(frozen=True)
class Ceilings:
    """What the last recorded diagnosis bounds. `families` the largest first. `families_needed` is the fewest families
    that would have to cost nothing at all, None where all of them would not do. `best_kernels` is what it would be with
    every family halved and every idle instant gone. `claimed` is the product of what the open ideas count for, and
    `allowed` what removing all that they act on would give; None for no bound."""

    diagnosis: str
    trace: str
    workload: str
    stack: tuple[str, ...]
    families: tuple[FamilyCeiling, ...]
    families_needed: int | None
    all_halved: float | None
    best_kernels: float | None
    ideas: tuple[OpenIdea, ...]
    left_out: tuple[str, ...]
    claimed: float
    allowed: float | None

    @property
    def charged(self) -> dict[str, float]:
        return {one.family: one.charged_share for one in self.families}


@dataclass(frozen=True)
class WouldDo:
    """What would do in place of a faster step, each by itself: so many devices at the scaling efficiency, so small a
    model (at the same utilisation; with the same tokens per parameter where the budget is by them), so small a budget,
    so many days. None where the question does not say enough."""

    devices: int
    parameters: float | None
    token_budget: float
    days: float


@dataclass(frozen=True)
class Feasibility:
    """The answer. `paces` are root and head, or the one that was given; the last is judged. `ideas` are those that the
    verdict names, `ideas_product` their product, `ideas_allowed` what removing all that they act on would give."""

    goal: Goal
    flops_per_token: float | None
    required_tokens_per_second: float
    paces: tuple[Pace, ...]
    ceilings: Ceilings | None
    verdict: str
    sentence: str
    why: str
    ideas: tuple[OpenIdea, ...]
    ideas_product: float | None
    ideas_allowed: float | None
    would_do: WouldDo
    excluded: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def judged(self) -> Pace:
        return self.paces[-1]
