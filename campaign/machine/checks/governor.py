"""The CPU frequency governors of all cores (/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor).

Any but `performance` lets the clock follow the load, and a process that waits for its turn is idle half the time.
Flagged by the protocol (docs/protocol.md; pyperf's `system tune` sets the same)."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look
from campaign.machine.fingerprint import governor

NAME, GROUP = "governor", "machine"


def check(look: Look) -> Answer:
    found = governor(look.host)
    if found is None:
        return Answer(UNKNOWN, "the kernel shows no frequency governor (a virtual machine hides its host's)")
    if found == "performance":
        return Answer(FIT, "performance, on all cores")
    return Answer(
        DOUBTFUL,
        found,
        "the clock follows the load: an arm that waited for its turn starts its block on a slower clock",
        "sudo cpupower frequency-set -g performance",
    )
