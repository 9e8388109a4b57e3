"""Whether the device that is measured on answers at all (nvidia-smi, /proc/driver/nvidia)."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, UNKNOWN, Answer, Look

NAME, GROUP = "device", "GPU"


def check(look: Look) -> Answer:
    if look.gpu is None:
        return Answer(UNKNOWN, f"unavailable: nothing is measured on a GPU here (device {look.device})")
    if not look.gpu.absent:
        return Answer(FIT, str(look.gpu.fields.get("name")))
    driver = look.host.text("proc", "driver", "nvidia", "version")
    if driver is None:
        return Answer(
            UNFIT,
            f"unavailable: {look.gpu.absent}, and no NVIDIA driver is loaded",
            f"{look.device} cannot be measured on: every hypothesis is `unavailable`",
            "a machine with the driver (docker run --gpus all), or a workload on the CPU: workload=reference_cpu",
        )
    return Answer(
        DOUBTFUL,
        f"unavailable: {look.gpu.absent}",
        f"foreign processes, clocks and throttling of {gpu.selector(look.device)} cannot be seen",
        "install the driver's tools (nvidia-utils)",
    )
