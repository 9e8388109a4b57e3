"""What a diagnosis finds, as records: every number that a page, a JSON answer or an artifact shows is one of these.

Times are whole nanoseconds, shares and percentages are fractions of 1 unless the name says percent. Evidence is
`profile`: none of it may reach a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from campaign.traces.counters import KernelCounters
from campaign.traces.timeline import Metric, Notice, Source

EVIDENCE = "profile"
DEVICE_BOUND, HOST_BOUND, SYNC_BOUND, MIXED = "device-bound", "host-bound", "sync-bound", "mixed"
UNATTRIBUTABLE, NO_DEVICE_WORK = "unattributable", "no device work"


@dataclass(frozen=True)
class DeviceUse:
    """One device's range, from the start of its first event to the end of its last (or the range asked for).
    `busy_ns` is the union over all its streams of kernels, copies and sets; `idle_ns` the rest of `span_ns`.
    `summed_ns` adds durations up, so `summed_ns - busy_ns` ran beside something else."""

    device: int
    label: str
    start_ns: int
    end_ns: int
    busy_ns: int
    kernel_busy_ns: int
    summed_ns: int
    events: int
    kernels: int
    copies: int
    sets: int
    streams: int
    in_graph: int = 0  # of its events, those that graphs launched

    @property
    def span_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def idle_ns(self) -> int:
        return self.span_ns - self.busy_ns

    @property
    def overlap_ns(self) -> int:
        return self.summed_ns - self.busy_ns


@dataclass(frozen=True)
class Gap:
    """A stretch in which a device had nothing to do. `cause` is `sync` (the host was waiting in a synchronising call
    when it began), `host` (the next work was launched only after it began), `queued` (it had been launched before), or
    `unknown` (the trace does not say). `host` says in words what the host did in it."""

    device: int
    start_ns: int
    end_ns: int
    before: str
    after: str
    cause: str
    host: str

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Steps:
    """How many steps the range holds. `source` is "ProfilerStep#", "NVTX <name>", "graph launches", "--steps" or "";
    `count` None where nothing says; `why` a sentence, also where the steps cannot be reconciled with the work."""

    count: int | None
    source: str
    why: str
    attributable: bool = True


@dataclass(frozen=True)
class Pass:
    """A named range as two clocks saw it: on the host, and projected on the streams. They overlap and never add."""

    name: str
    count: int
    host_ns: int | None
    stream_ns: int | None


@dataclass(frozen=True)
class Dispatch:
    """`idle_by_cause_ns` splits the idle time of all devices by Gap.cause; gaps too small and too many to look up one
    by one are under `small`. `aggregation_ceiling` is what removing all idle time that launching can explain would
    give: range / (range - that idle); None where it is unknown."""

    devices: tuple[DeviceUse, ...]
    steps: Steps
    host_launches: int
    graph_launches: int
    idle_by_cause_ns: dict[str, int]
    gaps: tuple[Gap, ...]
    passes: tuple[Pass, ...]
    metrics: tuple[Metric, ...]
    verdict: str
    sentence: str
    aggregation_ceiling: float | None
    replay_idle_ns: int | None = None  # of the idle time, what lay inside graph launches; None without graphs


@dataclass(frozen=True)
class KernelShare:
    """One kernel name on all devices. `alone_ns` is the time in which nothing else ran on its device."""

    name: str
    family: str
    launches: int
    summed_ns: int
    alone_ns: int


@dataclass(frozen=True)
class FamilyShare:
    """`charged_ns` charges each busy instant once, an instant shared by several families in equal parts, so that the
    families add up to the busy time. `alone_ns` is the time in which only this family ran: its most to win."""

    family: str
    title: str
    launches: int
    summed_ns: int
    charged_ns: float
    alone_ns: int
    share: float  # of the busy time
    kernels: tuple[KernelShare, ...]  # the longest first


@dataclass(frozen=True)
class Families:
    shares: tuple[FamilyShare, ...]  # the longest first
    busy_ns: int  # all devices
    range_ns: int  # all devices
    unclassified_share: float
    unclassified: tuple[KernelShare, ...]
    masks_ns: tuple[tuple[tuple[str, ...], int], ...]  # how long exactly this set of families ran together


@dataclass(frozen=True)
class Ceiling:
    """Amdahl's law on the captured range: what it would be if the family cost nothing (None: nothing would be left, so
    there is no bound), and if it cost half."""

    family: str
    share_of_range: float
    removed: float | None
    halved: float
    title: str = ""


@dataclass(frozen=True)
class TargetSet:
    families: tuple[str, ...]
    ratio: float | None


@dataclass(frozen=True)
class Ceilings:
    """`removing` and `halving` are the smallest sets of families that reach the target, empty where none does.
    `all_halved` is what halving everything gives."""

    each: tuple[Ceiling, ...]
    idle_removed: float | None
    target: float | None
    removing: tuple[TargetSet, ...]
    halving: tuple[TargetSet, ...]
    all_halved: float
    sentence: str
    groups: tuple[Ceiling, ...] = ()  # families together, as a hypothesis may name them: gemm, pointwise, format


@dataclass(frozen=True)
class Direction:
    """Copies in one direction ("DtoD", "HtoD", "memset"). `roof_share`: their use of the DRAM's rate, where known."""

    name: str
    count: int
    bytes: int
    summed_ns: int
    bytes_per_second: float | None
    roof_share: float | None = None


@dataclass(frozen=True)
class Mover:
    """A kernel that only moves or converts data. `word` is "streaming at roof", "compute-heavy conversion", "neither"
    or "no counters"; `why` has the numbers."""

    name: str
    family: str
    launches: int
    summed_ns: int
    share: float  # of the busy time
    dram_percent: float | None
    sm_percent: float | None
    word: str
    why: str


@dataclass(frozen=True)
class Copies:
    directions: tuple[Direction, ...]
    copy_share: float  # of the busy time
    moving_share: float  # of the busy time, kernels that only move or convert
    movers: tuple[Mover, ...]
    sentence: str


@dataclass(frozen=True)
class KernelFinding:
    """What the counters of one kernel say. `rule` is the rule that spoke, `verdict` its words, `numbers` what it went
    by, each a short text with its figure; `missing` counters that it would have needed. `recomputed_occupancy_percent`
    is from registers, block, shared memory and architecture. `ceiling` is Amdahl's from the trace, None without one."""

    name: str
    counters: KernelCounters
    launches_profiled: int
    launches_traced: int | None
    share: float | None  # of the busy time, from the trace
    ceiling: float | None
    recomputed_occupancy_percent: float | None
    recomputed_limits: tuple[str, ...]
    wave_efficiency: float | None
    rule: str
    verdict: str
    numbers: tuple[str, ...]
    next: tuple[str, ...]
    avoid: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class IdeaCeiling:
    """A hypothesis of the project against the profile. `matched` are the families or kernels that it acts on.
    `struck` where its ceiling cannot exceed the machine's floor 1 + d."""

    hypothesis: str
    acts_on: str
    matched: tuple[str, ...]
    share: float | None
    ceiling: float | None
    predicted: float
    struck: bool
    why: str


@dataclass(frozen=True)
class Diagnosis:
    source: Source
    notices: tuple[Notice, ...]
    dispatch: Dispatch | None
    families: Families | None
    ceilings: Ceilings | None
    copies: Copies | None
    kernels: tuple[KernelFinding, ...]
    ideas: tuple[IdeaCeiling, ...]
    reports: tuple[Source, ...] = ()  # the kernel reports that were joined
    unjoined: tuple[str, ...] = ()  # kernels of the reports that the trace does not have


@dataclass(frozen=True)
class Change:
    """Launches and time per step of a family or kernel in two bounded ranges."""

    name: str
    family: str
    before_launches: float
    after_launches: float
    before_ns: float
    after_ns: float


@dataclass(frozen=True)
class Comparison:
    """Two bounded ranges, per step. `matched` False where the ranges do not hold whole steps that correspond; `why`
    says so. `speedup_command` is what gives a speedup, which traced durations never do."""

    before: Source
    after: Source
    before_steps: Steps
    after_steps: Steps
    total: Change
    families: tuple[Change, ...]
    kernels: tuple[Change, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    matched: bool
    why: str
    sentence: str
    speedup_command: str
    notices: tuple[Notice, ...] = ()
