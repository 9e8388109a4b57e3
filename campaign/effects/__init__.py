"""Effects from rounds: `speed` (paired ratios), `memory` (peaks), `intervals` (Student t over rounds, planning) and
`floors` (what a machine resolves). Pure functions of records; numpy and scipy."""

from campaign.effects.floors import floor, scatter_bounds, threshold
from campaign.effects.intervals import Interval, detectable_sds, interval, ratio_of, resolves, rounds_needed
from campaign.effects.memory import memory_change
from campaign.effects.speed import effect, level_drift, pair_logs, readable, round_logs, seconds_per_token

__all__ = [
    "Interval",
    "detectable_sds",
    "effect",
    "floor",
    "interval",
    "level_drift",
    "memory_change",
    "pair_logs",
    "ratio_of",
    "readable",
    "resolves",
    "round_logs",
    "rounds_needed",
    "scatter_bounds",
    "seconds_per_token",
    "threshold",
]
