"""Swap: how much is used (/proc/meminfo), and pages that came back from it in the window (/proc/vmstat pswpin).

A session with swap-in is spoilt (measurement 5.5). Swap that is there and empty does no harm."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, UNKNOWN, Answer, Look
from campaign.machine.checks.memory import kilobytes

NAME, GROUP = "swap", "machine"
USED_BYTES = 64 * units.MIB  # judgement: less than that a machine leaves lying there for weeks
MEND = "sudo swapoff -a (with enough free memory for what is in it)"


def check(look: Look) -> Answer:
    total, free = kilobytes(look.host, "SwapTotal"), kilobytes(look.host, "SwapFree")
    if total is None or free is None:
        return Answer(UNKNOWN, "/proc/meminfo says nothing")
    if not total:
        return Answer(FIT, "none")
    seen = f"{units.size(total - free)} of {units.size(total)} used"
    before, after = look.before.swapped_in_pages, look.after.swapped_in_pages
    came_back = 0 if before is None or after is None else after - before
    if came_back > 0:
        seen += f", {came_back} pages came back in {look.window_seconds:.1f} s"
        return Answer(UNFIT, seen, "a step that waits for the disk measures the disk", MEND)
    if total - free > USED_BYTES:
        return Answer(DOUBTFUL, seen, "memory was short: pages of a trial may have to come back from the disk", MEND)
    return Answer(FIT, seen)
