"""Whether the other hardware thread of the pinned cores is busy (cpu*/topology/thread_siblings_list, /proc/stat).

Two threads of a core share its units. SMT is flagged by the protocol where it is in use (measurement 5.5)."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look, numbers
from campaign.machine.checks.cores import ranges

NAME, GROUP = "sibling", "machine"
BUSY = 0.1  # judgement


def check(look: Look) -> Answer:
    listed = [
        look.host.text("sys", "devices", "system", "cpu", f"cpu{core}", "topology", "thread_siblings_list")
        for core in look.pinned
    ]
    if any(text is None for text in listed):
        return Answer(UNKNOWN, "the kernel does not say which hardware threads share a core")
    others = sorted({core for text in listed for core in numbers(text or "")} - set(look.pinned))
    if not others:
        return Answer(FIT, f"no other hardware thread on core {ranges(look.pinned)}")
    busy = [(core, share) for core in others if (share := look.busy(core)) is not None]
    if not busy:
        return Answer(UNKNOWN, f"whether {ranges(others)}, beside core {ranges(look.pinned)}, is busy cannot be read")
    worst, share = max(busy, key=lambda one: one[1])
    seen = f"core {worst}, beside {ranges(look.pinned)}, was busy {units.share(share)} of {look.window_seconds:.1f} s"
    if share > BUSY:
        return Answer(
            DOUBTFUL,
            seen,
            "both threads share one core's units: a step is slower while the other works",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control, or stop what runs there (top, then f, P)",
        )
    return Answer(FIT, seen)
