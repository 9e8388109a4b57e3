"""The device's power limit against its default (nvidia-smi power.limit, power.default_limit). The limit is a part of
the fingerprint."""

from __future__ import annotations

from campaign import units
from campaign.machine import gpu
from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look

NAME, GROUP = "power", "GPU"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    limit, default = look.gpu.number("power.limit"), look.gpu.number("power.default_limit")
    if limit is None:
        return Answer(UNKNOWN, "this device does not tell its power limit")
    drawn = look.gpu.number("power.draw")
    seen = f"limit {limit:.0f} W" + ("" if drawn is None else f", {drawn:.0f} W drawn now")
    if default is None or limit >= default:
        return Answer(FIT, seen)
    return Answer(
        DOUBTFUL,
        f"{seen}; its default is {default:.0f} W",
        f"at {units.share(limit / default)} of its power it runs on lower clocks than the same device elsewhere",
        f"sudo nvidia-smi -i {gpu.selector(look.device)} -pl {default:.0f}, where you may",
    )
