"""The NVIDIA driver, and the newest CUDA that it runs, against the CUDA that torch brings.

Within a major version any driver of it runs a newer minor one; a newer major version it does not run (NVIDIA's CUDA
compatibility guide, "minor version compatibility")."""

from __future__ import annotations

import re

from campaign.machine.checks._look import FIT, UNFIT, Answer, Look

NAME, GROUP = "CUDA driver", "software"


def check(look: Look) -> Answer | None:
    if look.gpu is None or look.gpu.absent:
        return None
    runs, wanted = look.gpu.cuda, wanted_major(look)
    seen = str(look.gpu.fields.get("driver_version")) + (f", CUDA up to {runs}" if runs else "")
    if runs and wanted is not None and int(runs.partition(".")[0]) < wanted:
        return Answer(
            UNFIT,
            f"{seen}; torch brings CUDA {wanted}",
            f"this driver cannot run CUDA {wanted}: every trial fails at its start",
            f"a newer driver, or a torch built for CUDA {runs.partition('.')[0]}",
        )
    return Answer(FIT, seen)


def wanted_major(look: Look) -> int | None:
    """The major version of the CUDA that torch brings, from its version ('+cu128') or its runtime's package."""
    if found := re.search(r"\+cu(\d+)\d$", look.packages.get("torch") or ""):
        return int(found[1])
    if version := look.packages.get("nvidia-cuda-runtime"):
        return int(version.partition(".")[0])
    return 12 if look.packages.get("nvidia-cuda-runtime-cu12") else None
