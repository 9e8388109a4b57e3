"""Processes with a compute context on the device (nvidia-smi --query-compute-apps). None is ours, since nothing is
measured yet; a round beside foreign work is invalid (measurement 5.5)."""

from __future__ import annotations

from campaign.machine.checks._look import FIT, UNFIT, UNKNOWN, Answer, Look

NAME, GROUP = "processes", "GPU"
SHOWN = 3


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    running = look.gpu.processes
    if running is None:
        return Answer(UNKNOWN, "this driver does not tell which processes are on it")
    if not running:
        return Answer(FIT, "none on it")
    named = ", ".join(f"{name} ({pid})" for pid, name in running[:SHOWN])
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    return Answer(UNFIT, f"{named}{more}", "a round beside foreign work is invalid", f"kill {running[0][0]}, or wait")
