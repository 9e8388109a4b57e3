"""What holds the device's clock down now (NVML clock event reasons).

A round in which a hardware slowdown, heat or the power brake did is invalid (measurement 5.5); the software power cap
is reported, not judged."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, UNKNOWN, Answer, Look

NAME, GROUP = "throttling", "GPU"
MEND = "let it cool, look at its power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    if look.gpu.held is None:
        return Answer(UNKNOWN, "this driver does not tell what holds its clock down")
    degrees = look.gpu.number("temperature.gpu")
    seen = ", ".join(sorted(look.gpu.held)) or "nothing holds its clock down"
    seen += "" if degrees is None else f"; {degrees:.0f} C"
    if any("slowdown" in reason for reason in look.gpu.held):
        return Answer(UNFIT, seen, "a round in which this happens is invalid", MEND)
    if "sw_power_cap" in look.gpu.held:
        return Answer(DOUBTFUL, seen, "an edit that draws more power loses clock for it, which counts against it", MEND)
    return Answer(FIT, seen)
