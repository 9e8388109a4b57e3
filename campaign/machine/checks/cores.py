"""The cores that this process may run on (its affinity, which cpusets narrow), and those that rounds are pinned to.

Arms are pinned to the last of them; the process that hands out the turns needs one more (docs/protocol.md)."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look

NAME, GROUP = "cores", "machine"
MEND = "taskset -pc, docker run --cpuset-cpus or the cpuset of your scheduler: allow one core more than threads"


def check(look: Look) -> Answer:
    allowed, pinned = look.cores, look.pinned
    seen = f"{len(allowed)} allowed ({ranges(allowed)}), rounds are pinned to {ranges(pinned)}"
    online = set(look.after.cores)
    if online and (gone := sorted(set(pinned) - online)):
        return Answer(UNFIT, f"{seen}, and {ranges(gone)} is offline", "trials cannot be pinned there", MEND)
    if len(allowed) <= len(pinned):
        return Answer(
            DOUBTFUL, seen, "the process that hands out the turns wakes on the core that is being timed", MEND
        )
    return Answer(FIT, seen)


def ranges(cores: tuple[int, ...] | list[int]) -> str:
    """'0-3,8' of (0, 1, 2, 3, 8)."""
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
