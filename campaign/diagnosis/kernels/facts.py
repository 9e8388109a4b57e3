"""What a kernel rule sees, and what it says. A module without ORDER: no rule itself.

Percentages are 0 to 100 as the tool prints them. A fact is None where its counters are not there; no rule takes that
for 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from campaign import units
from campaign.errors import BadInput, UnknownName
from campaign.occupancy import ARCHITECTURES, Occupancy, theoretical
from campaign.traces.counters import KernelCounters

# NVIDIA's own thresholds, in the rule files that come with Nsight Compute: IssueSlotUtilization speaks below 0.6 issues
# a cycle, CPIStall of a reason that is more than 0.3 of the latency, SOLBottleneck calls a unit well used above 80 %
# and both of them latency-bound below 60 %, LaunchConfiguration speaks of a tail from an estimated gain of 20 % on.
ISSUE_ACTIVE_LOW = 0.6
STALL_HIGH_PERCENT = 30.0
ROOF_PERCENT = 80.0
LATENCY_BOUND_PERCENT = 60.0
TAIL_GAIN = 0.20
# From this many registers on a quarter of a multiprocessor's threads fit: 65,536 / 128 = 512.
REGISTERS_HIGH = 128
# Between the published matrix kernels: 78 and 82 % are healthy, 61 % is not (case E).
TENSOR_BUSY_PERCENT = 70.0
# Below this the tensor pipe is not what the kernel is about.
TENSOR_USED_PERCENT = 20.0
# What "low occupancy" means where it is named: at most half of the warps that fit.
OCCUPANCY_LOW_PERCENT = 50.0
MATRIX_PIPE = "tensor"
CONVERTING = frozenset({"quantization", "layout"})
QUEUES = ("lg_throttle", "mio_throttle", "tex_throttle")
LONG_SCOREBOARD = "long_scoreboard"


@dataclass(frozen=True)
class Found:
    """What a rule says. `next` are experiments, the most promising first; `avoid` the one not to try; `missing` the
    counters without which nothing more can be said."""

    verdict: str
    numbers: tuple[str, ...]
    next: tuple[str, ...] = ()
    avoid: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """One kernel: its counters, its family, and its part of the trace where there is one."""

    counters: KernelCounters
    family: str = "other"
    share: float | None = None

    @cached_property
    def occupancy(self) -> Occupancy | None:
        """What fits on a multiprocessor, recomputed; None where the architecture has no known limits, or registers or
        threads are unknown or impossible."""
        one = self.counters
        if one.registers_per_thread is None or one.threads_per_block is None or one.architecture not in ARCHITECTURES:
            return None
        shared = (one.static_shared_bytes or 0) + (one.dynamic_shared_bytes or 0)
        try:
            return theoretical(
                one.architecture,
                registers=one.registers_per_thread,
                threads=one.threads_per_block,
                shared_bytes=shared,
            )
        except (BadInput, UnknownName):
            return None

    @property
    def occupancy_percent(self) -> float | None:
        """Theoretical: the tool's, else the recomputed one."""
        if self.counters.theoretical_occupancy_percent is not None:
            return self.counters.theoretical_occupancy_percent
        return 100 * self.occupancy.share if self.occupancy else None

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What runs out first: as recomputed, else by the tool's limits."""
        if self.occupancy:
            return self.occupancy.limited_by
        limits = self.counters.limits_blocks
        return tuple(name for name, limit in limits.items() if limit == min(limits.values()))

    @property
    def registers_limit(self) -> bool:
        """Whether registers keep warps out: they run out first, and before the multiprocessor has all its warps."""
        return "registers" in self.limited_by and "warps" not in self.limited_by

    @property
    def blocks_resident(self) -> int | None:
        """Blocks that fit on a multiprocessor together."""
        if self.occupancy:
            return self.occupancy.blocks
        return int(min(self.counters.limits_blocks.values())) if self.counters.limits_blocks else None

    @property
    def wave_efficiency(self) -> float | None:
        """waves / whole waves. None within one wave, where persistent kernels and clusters stay by design."""
        waves = self.counters.waves
        if waves is None and self.occupancy and self.occupancy.blocks and (self.counters.cluster_blocks or 1) == 1:
            grid, chips = self.counters.grid_blocks, self.counters.multiprocessors
            waves = grid / (chips * self.occupancy.blocks) if grid and chips else None
        return waves / math.ceil(waves) if waves is not None and waves > 1 else None

    @property
    def issue_active(self) -> float | None:
        """The part of its cycles in which a scheduler issued, or the most that it can be: with W eligible warps on
        average at most W of the cycles have one (Markov's inequality)."""
        if self.counters.no_eligible_percent is not None:
            return 1 - self.counters.no_eligible_percent / 100
        eligible = self.counters.eligible_warps
        return eligible if eligible is not None and eligible < ISSUE_ACTIVE_LOW else None

    @property
    def spills(self) -> bool | None:
        """By a counter of spilling; no local traffic at all means no spill either. None where neither says."""
        if self.counters.spill_requests is not None:
            return self.counters.spill_requests > 0
        return False if self.counters.local_requests == 0 else None

    @property
    def leading_stall(self) -> tuple[str, float] | None:
        """The most frequent reason for which a warp waited, with its percentage."""
        waits = {name: value for name, value in self.counters.stalls_percent.items() if name != "selected"}
        return max(waits.items(), key=lambda one: one[1]) if waits else None

    def stall(self, reason: str) -> float | None:
        return self.counters.stalls_percent.get(reason)

    @property
    def tensor(self) -> float | None:
        return self.counters.pipes_percent.get(MATRIX_PIPE)

    # What a rule goes by, in words; empty where it is unknown.

    def said_registers(self) -> str:
        registers = self.counters.registers_per_thread
        return f"{registers} registers a thread" if registers is not None else ""

    def said_residency(self) -> str:
        limits = f", limited by {' and '.join(self.limited_by)}" if self.limited_by else ""
        if self.occupancy:
            most = ARCHITECTURES[self.counters.architecture].warps
            return f"{self.occupancy.warps} of {most} warps fit ({100 * self.occupancy.share:.1f} %{limits})"
        percent = self.occupancy_percent
        return f"theoretical occupancy {percent:.1f} %{limits}" if percent is not None else ""

    def said_spills(self) -> str:
        one = self.counters
        if one.spill_requests is not None:
            return f"{units.many(one.spill_requests)} spill requests ({one.spill_counter})"
        if one.local_requests is not None:
            return f"local traffic {units.many(one.local_requests)}" + ("" if one.local_requests else ", so no spill")
        return ""

    def said_issue(self) -> str:
        if self.counters.no_eligible_percent is not None:
            return f"no eligible warp in {self.counters.no_eligible_percent:.1f} % of the cycles"
        if self.counters.eligible_warps is not None:
            return f"{self.counters.eligible_warps:g} eligible warps a scheduler"
        return ""

    def said_stall(self, reason: str) -> str:
        percent = self.stall(reason)
        return f"{reason.replace('_', ' ')} {percent:.1f} % of the time between instructions" if percent else ""

    def said_leading(self) -> str:
        return f"leading stall {self.leading_stall[0]} ({self.leading_stall[1]:.1f} %)" if self.leading_stall else ""

    def said_use(self, *which: str) -> tuple[str, ...]:
        """Of "sm", "memory", "dram", "l2", "l1", "tensor", those that are known."""
        known = {
            "SM": ("sm", self.counters.sm_percent),
            "memory": ("memory", self.counters.memory_percent),
            "DRAM": ("dram", self.counters.dram_percent),
            "L2": ("l2", self.counters.l2_percent),
            "L1": ("l1", self.counters.l1_percent),
            "tensor pipe": (MATRIX_PIPE, self.tensor),
        }
        return tuple(
            f"{words} {value:.1f} %" for words, (key, value) in known.items() if key in which and value is not None
        )


def numbers(*said: str) -> tuple[str, ...]:
    """Those that are known."""
    return tuple(one for one in said if one)
