"""What must be equal between two arms beyond the edit, as the trial's own process tells it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from campaign.secrecy import secret_variable

WATCHED_VARIABLES = tuple("OMP_ MKL_ KMP_ GOMP_ OPENBLAS_ TORCH PYTORCH_ CUDA_ NCCL_ TRITON_ LD_".split())

# torchrun tells its ranks of itself in variables that differ from start to start.
OF_A_START = "TORCHELASTIC_"


def of_arm(device: str, facts: Mapping[str, Any], excluded: set[str]) -> dict[str, Any]:
    """What must be equal between two arms beyond the edit (`excluded`: the variables that an edit sets)."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": _torch_version(),
        "device": spelled(device),
        "dataset": facts.get("dataset"),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(WATCHED_VARIABLES)
            and not name.startswith(OF_A_START)
            and name not in excluded
            and not secret_variable(name)
        },
    }
    if device.startswith("cuda"):
        import torch

        found["device_name"] = torch.cuda.get_device_name()
        found["device_uuid"] = str(torch.cuda.get_device_properties(0).uuid)
    return found


def spelled(device: str) -> str:
    """The device as `machine.fingerprint` spells it."""
    return "cuda:0" if device == "cuda" else device


def _torch_version() -> str | None:
    """From the package's metadata, so that a workload without torch does not import it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None
