"""Multi-instance mode (nvidia-smi mig.mode.current): instances share power, heat and clocks of one device (NVIDIA's MIG
user guide), and nvidia-smi tells neither clocks nor processes of one instance."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "MIG", "GPU"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    mode = look.gpu.fields.get("mig.mode.current")
    if mode != "Enabled":
        return Answer(FIT, "off" if mode else "this device has none")
    return Answer(
        DOUBTFUL,
        "on",
        "instances share one device's power and clocks: a neighbour's work shows in yours and cannot be seen",
        "ask for the whole device; whoever owns the machine may turn it off (nvidia-smi -mig 0)",
    )
