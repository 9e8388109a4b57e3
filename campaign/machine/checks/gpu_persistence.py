"""Persistence mode (nvidia-smi persistence_mode): without it the driver unloads the device's state when the last
process ends, and every trial's start pays for it again. Flagged by the protocol (measurement 5.5)."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look

NAME, GROUP = "persistence", "GPU"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    mode = look.gpu.fields.get("persistence_mode")
    if mode is None:
        return Answer(UNKNOWN, "this driver does not tell its persistence mode")
    if mode == "Enabled":
        return Answer(FIT, "on")
    return Answer(
        DOUBTFUL,
        "off",
        "the device is set up anew in each fresh process, from idle clocks",
        f"sudo nvidia-smi -i {gpu.selector(look.device)} -pm 1",
    )
