"""The SM clock now and at most, and whether applications clocks hold it (nvidia-smi clocks.sm, clocks.max.sm,
clocks.applications.graphics). Unlocked clocks are flagged by the protocol (measurement 5.5), but whether
nvidia-smi -lgc locked them no field tells."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.checks._look import FIT, UNKNOWN, Answer, Look

NAME, GROUP = "clocks", "GPU"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    now, most = look.gpu.number("clocks.sm"), look.gpu.number("clocks.max.sm")
    if now is None or most is None:
        return Answer(UNKNOWN, "this device does not tell its clocks")
    held = look.gpu.number("clocks.applications.graphics")
    default = look.gpu.number("clocks.default_applications.graphics")
    seen = f"SM {now:.0f} MHz now, {most:.0f} MHz at most"
    if held is not None and held < most and held != default:
        return Answer(FIT, f"{seen}, held at {held:.0f} MHz")
    return Answer(
        UNKNOWN,
        f"{seen}; no applications clock holds it, and whether it is locked the driver does not tell",
        "a clock that is not locked follows power and temperature",
        f"sudo nvidia-smi -i {gpu.selector(look.device)} -lgc MHZ, of nvidia-smi -q -d SUPPORTED_CLOCKS, where you may",
    )
