"""The installed Triton, by its package's metadata: GPU kernels are written in it; a CPU needs it for static evidence
alone."""

from __future__ import annotations

from campaign.machine import gpu
from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "triton", "software"


def check(look: Look) -> Answer:
    found = look.packages.get("triton")
    if found is not None:
        return Answer(FIT, found)
    if gpu.is_cuda(look.device):
        return Answer(DOUBTFUL, "not installed", "kernels in Triton are `unavailable`", "pip install -e '.[triton]'")
    return Answer(FIT, "not installed; on a CPU only campaign static asks for it")
