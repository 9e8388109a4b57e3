"""What the clocks that blocks are timed with can tell apart, and the kernel's clock source.

A block on a CPU lasts 50 ms at least (`protocol.block_minimum_seconds`), so a clock that moves in steps of 50 us is
wrong by 0.1 % of it. `hpet`, `acpi_pm` and `jiffies` are read through the kernel (the kernel's timekeeping
documentation)."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, UNKNOWN, Answer, Look

NAME, GROUP = "timer", "machine"
BLOCK_SECONDS = 0.05
FLAGGED = 0.001  # of a block
SLOW = ("hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies")


def check(look: Look) -> Answer:
    timer = look.timer
    if timer is None:
        return Answer(UNKNOWN, "not looked at")
    here = ("sys", "devices", "system", "clocksource", "clocksource0")
    source = look.host.text(*here, "current_clocksource")
    step = max(timer.wall_seconds, timer.cpu_seconds)
    seen = (
        f"wall time moves in {_small(timer.wall_seconds)}, processor time in "
        f"{_small(timer.cpu_seconds)}; a reading takes {_small(timer.read_seconds)}"
    )
    seen += f"; clock source {source}" if source else ""
    if step >= timer.limit_seconds:
        which = "wall" if timer.wall_seconds >= timer.limit_seconds else "processor"
        return Answer(UNFIT, seen, f"{which} time does not move within a block", "another kernel or sandbox")
    if step > FLAGGED * BLOCK_SECONDS:
        return Answer(
            DOUBTFUL,
            seen,
            f"a block of {units.seconds(BLOCK_SECONDS)} is known to {units.share(step / BLOCK_SECONDS)} at best",
            f"protocol.block_minimum_seconds={step / FLAGGED:.2g}, or another kernel or sandbox",
        )
    if source in SLOW:
        known = look.host.text(*here, "available_clocksource") or ""
        better = next((name for name in known.split() if name not in SLOW), "tsc")
        return Answer(
            DOUBTFUL,
            seen,
            "each reading goes through the kernel",
            f"echo {better} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
    return Answer(FIT, seen)


def _small(seconds: float) -> str:
    return units.nanoseconds(round(1e9 * seconds))
