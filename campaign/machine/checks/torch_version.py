"""The installed torch, by its package's metadata (nothing is imported): there, and built for the device that is
measured on. PyTorch names CPU builds '+cpu'."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look

NAME, GROUP = "torch", "software"


def check(look: Look) -> Answer:
    found = look.packages.get("torch")
    if found is None:
        return Answer(
            DOUBTFUL, "not installed", "workloads in torch are `unavailable`", "pip install -c constraints.txt torch"
        )
    if gpu.is_cuda(look.device) and found.endswith("+cpu"):
        return Answer(
            UNFIT,
            found,
            f"a build without CUDA cannot run on {look.device}",
            "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128",
        )
    return Answer(FIT, found)
