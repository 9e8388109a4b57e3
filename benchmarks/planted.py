"""The reference workload with a stall of known length in each step, to see whether the protocol finds it."""

from __future__ import annotations

import time
from typing import Any

from models.workload import ReferenceWorkload


class Planted(ReferenceWorkload):
    """Sleeps `stall_seconds` in each step; everything else is the reference workload."""

    def __init__(self, *, stall_seconds: float, **config: Any) -> None:
        super().__init__(**config)
        self.stall_seconds = stall_seconds

    def step(self) -> None:
        super().step()
        if self.stall_seconds:
            time.sleep(self.stall_seconds)
