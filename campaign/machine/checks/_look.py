"""What a check sees, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from campaign.machine.host import Host

FIT, DOUBTFUL, UNFIT, UNKNOWN = "fit", "doubtful", "unfit", "unknown"
LEVELS = (UNFIT, DOUBTFUL, UNKNOWN, FIT)  # the worst first
GROUPS = ("machine", "GPU", "software", "project", "floor")


class Answer(NamedTuple):
    """`seen` in words and figures; `cost` what it does to a measurement, `mend` the command that ends it, both empty
    where there is nothing to mend."""

    level: str
    seen: str
    cost: str = ""
    mend: str = ""


class Finding(NamedTuple):
    """An answer with the check that gave it."""

    check: str
    group: str
    level: str
    seen: str
    cost: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Counters:
    """What the kernel had counted at one moment (`seconds` of a steady clock). `cores` has (busy, stolen, all) clock
    ticks by core; `own_seconds` the processor time of this process and its ended children. A counter is None where
    this machine has none."""

    seconds: float = 0.0
    cores: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    own_seconds: float = 0.0
    swapped_in_pages: int | None = None
    quota_periods: tuple[int, int] | None = None  # (stopped, all)
    heat_events: int | None = None


@dataclass(frozen=True)
class Timer:
    """What this process's clocks can tell apart, in seconds: the smallest step seen of wall time and of processor
    time, and what one reading of wall time takes. `limit_seconds`: a clock that did not move for so long was given
    up on."""

    wall_seconds: float
    cpu_seconds: float
    read_seconds: float
    limit_seconds: float = 0.05


@dataclass(frozen=True)
class Gpu:
    """What nvidia-smi says of the device. `absent` says why it says nothing; `fields` are by its own names, None for
    what this device or driver does not have. `processes` are (pid, name), `held` the clock event reasons now, each
    None where they cannot be asked for; `cuda` is the newest CUDA that the driver runs, '12.8'."""

    absent: str = ""
    fields: Mapping[str, str | None] = field(default_factory=dict)
    processes: tuple[tuple[int, str], ...] | None = None
    held: frozenset[str] | None = None
    cuda: str = ""

    def number(self, name: str) -> float | None:
        """A field as a number; None where it is none."""
        try:
            return float(self.fields.get(name) or "")
        except ValueError:
            return None


@dataclass(frozen=True)
class Place:
    """A folder that is written to. `kind` is its file system's, as in /proc/self/mountinfo; `flaw` why nothing can be
    written there."""

    name: str
    path: str
    free_bytes: int
    kind: str = ""
    flaw: str = ""


@dataclass(frozen=True)
class Project:
    """The project's git and MLflow. `source` is that of `provenance.snapshot`. `tracking` is 'mlflow' or 'none', or the
    address of a server; `store` what became of asking for its state: 'none', 'ok', or what is wrong; `unmirrored` the
    decisions of the ledger that it lacks, of `decisions`."""

    source: Mapping[str, Any]
    tracking: str = "none"
    store: str = "none"
    decisions: int = 0
    unmirrored: int = 0


@dataclass(frozen=True)
class Look:
    """Everything that checks look at. `cores` are those that this process may run on, `pinned` those that rounds of
    this workload are pinned to. `before` and `after` bound the window in which `gather` looked. `packages` are
    versions by name, `compiler` (command, first line of its --version) or ('', why not). `gpu` is None where nothing
    measures on a GPU. `project` is None outside one. `python` has version, implementation and debug."""

    host: Host
    device: str
    cores: tuple[int, ...]
    pinned: tuple[int, ...]
    before: Counters = Counters()
    after: Counters = Counters()
    timer: Timer | None = None
    gpu: Gpu | None = None
    packages: Mapping[str, str | None] = field(default_factory=dict)
    compiler: tuple[str, str] = ("", "")
    python: Mapping[str, Any] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    project: Project | None = None

    @property
    def window_seconds(self) -> float:
        return self.after.seconds - self.before.seconds

    def busy(self, core: int) -> float | None:
        """The share of the window in which a core was busy, by whomever."""
        counted = self._ticks(core)
        return None if counted is None else counted[0]

    def stolen(self) -> float | None:
        """The share of the window's core time that the hypervisor took."""
        counted = [found for core in self.after.cores if (found := self._ticks(core)) is not None]
        return sum(stolen for _, stolen in counted) / len(counted) if counted else None

    def others(self) -> float | None:
        """How many cores' worth of work others did in the window: all of it but our own. None where /proc/stat is
        missing, or only one side of the window was read."""
        busy = [found for core in self.after.cores if (found := self.busy(core)) is not None]
        if not busy or self.window_seconds <= 0:
            return None
        return max(0.0, sum(busy) - (self.after.own_seconds - self.before.own_seconds) / self.window_seconds)

    def _ticks(self, core: int) -> tuple[float, float] | None:
        """(busy, stolen) shares of one core in the window."""
        before, after = self.before.cores.get(core), self.after.cores.get(core)
        if before is None or after is None or after[2] <= before[2]:
            return None
        total = after[2] - before[2]
        return (after[0] - before[0]) / total, (after[1] - before[1]) / total


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a kernel list: '0-3,8' is (0, 1, 2, 3, 8). Empty for what is no list."""
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return ()
        found |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))
