"""A bounded range of whole steps under torch.profiler, as a Chrome trace. Imports torch; runs in a process of its own.

Nothing here is timed by us, and nothing of it may reach an effect: the trace says where a step's time goes, and the
profiler itself slows what it looks at.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule


def profile_steps(workload: Any, steps: int, warmup: int, file: Path) -> dict[str, Any]:
    """Run `warmup` steps that nothing watches, one that the profiler starts up in, then `steps` whole steps into the
    trace `file` (gzip where its name ends so), each within its `ProfilerStep#`.

    The device is synchronised at the two ends of the range only, so that every kernel of its steps is in it, and steps
    overlap inside it as they do in training. A captured graph is replayed under the profiler as in any other step.
    """
    on_device = workload.device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_device else [])]
    for _ in range(warmup):
        workload.step()
    _synchronize(workload, on_device=on_device)
    collecting = gc.isenabled()
    gc.disable()  # a collection inside the range would be an idle gap of the device
    try:
        with profile(activities=activities, schedule=schedule(wait=0, warmup=1, active=steps, repeat=1)) as profiled:
            for step in range(1 + steps):
                workload.step()
                if step in (0, steps):
                    _synchronize(workload, on_device=on_device)
                profiled.step()
    finally:
        if collecting:
            gc.enable()
    profiled.export_chrome_trace(str(file))
    return {
        "steps": steps,
        "torch": torch.__version__,
        "activities": [activity.name for activity in activities],
        "facts": workload.facts(),
    }


def _synchronize(workload: Any, *, on_device: bool) -> None:
    """By the workload's word, and by ours: a step whose work is not done would end outside the range."""
    workload.synchronize()
    if on_device:
        torch.cuda.synchronize()
