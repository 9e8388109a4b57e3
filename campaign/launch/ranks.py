"""One answer out of those of several ranks: the step is the slowest rank's, memory the largest, tokens the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from campaign.launch.command import Failed

BYTES = ("live_peak_bytes", "process_peak_bytes", "reserved_peak_bytes", "device_used_bytes", "graph_pool_bytes")


def merged(command: str, replies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The trial's answer to `command` from those of ranks 0, 1, ... What is not named here is rank 0's.

    block: wall, CPU and device seconds of the rank with the longest wall time; tokens, switches and idle CPU time are
    sums; the loss is the mean over the ranks that tell one, since each has its own part of the batch.
    probe: each step's loss likewise. Raises Failed where ranks tell different numbers of them.
    memory: the largest of each number over ranks; a device's limit is rank 0's.
    build: threads and tokens are sums, so that all ranks together get as many cores as they use.
    """
    first = dict(replies[0])
    if len(replies) == 1:
        return first
    if command == "block":
        slowest = max(replies, key=lambda reply: reply["wall_seconds"])
        first = {**slowest, "gradient_norm": first["gradient_norm"]}
        for name in ("tokens", "involuntary_switches", "idle_cpu_seconds"):
            first[name] = sum(reply[name] for reply in replies)
        first["recompiled"] = max(reply["recompiled"] for reply in replies)
    elif command == "memory":
        for name in BYTES:
            told = [reply[name] for reply in replies if reply.get(name) is not None]
            first[name] = max(told) if told else None
    elif command == "build":
        first["tokens_per_step"] = sum(reply["tokens_per_step"] for reply in replies)
        first["facts"] = {**first["facts"], "threads": sum(reply["facts"]["threads"] for reply in replies)}
    elif command == "last":
        first["unmoved"] = sorted({name for reply in replies for name in reply["unmoved"]})
    elif command == "probe":
        losses = [reply["losses"] for reply in replies if reply["losses"]]
        if len({len(told) for told in losses}) > 1:
            counts = ", ".join(str(len(reply["losses"])) for reply in replies)
            raise Failed("garbage", f"of the same probed steps the ranks tell {counts} losses", "record one every step")
        first["losses"] = [_mean(step) for step in zip(*losses, strict=True)]
    if command in ("block", "memory", "last", "restart"):
        told = [reply["loss"] for reply in replies if reply["loss"] is not None]
        first["loss"] = _mean(told) if told else None
    return first


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
