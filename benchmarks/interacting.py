"""A training step whose time is planted: three edits, each worth what the config says, alone and together.

A parameter vector is trained in numpy, which takes next to no time; the rest of the step waits, or computes, for
`seconds` x exp(-v), where v is the sum of the gains of the edits that are on and of their interactions (logs). Waiting
is asleep (`compute: 0`); computing is `compute` passes over a vector on root, in proportion fewer.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy

PASS_ELEMENTS = 16384


class Interacting:
    """`gains` by edit and `together` by two edits (`ab`), in logs; `a`, `b` and `c` switch the edits on."""

    low_precision = "none"

    def __init__(
        self,
        *,
        device: str,
        name: str,
        threads: int,
        seconds: float,
        compute: int,
        a: bool,
        b: bool,
        c: bool,
        gains: dict[str, float],
        together: dict[str, float],
    ) -> None:
        self.device = device
        there = {edit for edit, on in (("a", a), ("b", b), ("c", c)) if on}
        self.log = sum(gains[edit] for edit in there)
        self.log += sum(value for pair, value in together.items() if set(pair) <= there)
        self.seconds = seconds * math.exp(-self.log)
        self.passes = round(compute * math.exp(-self.log))
        draw = numpy.random.default_rng(0)
        self.start_D, self.target_D = draw.standard_normal((2, 64), dtype=numpy.float32)
        self.scratch = draw.standard_normal(PASS_ELEMENTS, dtype=numpy.float32)
        self.tokens_per_step = 64
        self.restart()

    @classmethod
    def exact(cls, config: dict[str, Any]) -> dict[str, Any]:
        return dict(config)

    @classmethod
    def reference(cls, config: dict[str, Any]) -> dict[str, Any]:
        return dict(config)

    def restart(self) -> None:
        self.weight_D = self.start_D

    def step(self) -> None:
        difference_D = self.weight_D - self.target_D
        self.gradient_D = 2 * difference_D
        self.loss = float((difference_D * difference_D).sum())
        self.weight_D = self.weight_D - 0.01 * self.gradient_D
        if self.passes:
            for _ in range(self.passes):
                numpy.sin(self.scratch, out=self.scratch)
        else:
            time.sleep(self.seconds)

    def synchronize(self) -> None:
        pass

    def last_step(self) -> dict[str, float]:
        return {"loss": self.loss, "gradient_norm": float((self.gradient_D * self.gradient_D).sum()) ** 0.5}

    def gradients(self) -> dict[str, numpy.ndarray]:
        return {"weight": self.gradient_D}

    def parameters(self) -> dict[str, numpy.ndarray]:
        return {"weight": self.weight_D}

    def facts(self) -> dict[str, Any]:
        return {"threads": 1, "parameters": self.weight_D.size, "dataset": "fixed", "low_precision": "none"}

    def close(self) -> None:
        pass
