"""A training step small enough for tests of the harness, with every way to fail that the harness must survive.

One parameter vector of `width`, trained by plain gradient descent on a fixed target, in numpy: a trial starts in a
fraction of the time that importing torch takes. `tensors` does the same in torch, for what counts operators and
tensors. `sleep` and `nap` seconds are waited in each step (two planted effects, which add up); `fault` happens at step
`fault_step` (1-based). `alone`: a second one at the same time runs out of memory.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path

import numpy


class UnavailableHere(RuntimeError):
    reason = "this workload needs a device that no machine has"
    remedy = "run it elsewhere"


class Tiny:
    low_precision = "none"

    def __init__(
        self,
        *,
        device="cpu",
        width=64,
        work=20,
        sleep=0.0,
        nap=0.0,
        fault="",
        fault_step=1,
        scale=1.0,
        ballast=0,
        seed=0,
        alone=False,
        tensors=False,
    ):
        if fault == "unavailable":
            raise UnavailableHere(UnavailableHere.reason)
        if alone:
            self.only_one = (Path(__file__).parent / "only_one").open("w")
            try:
                fcntl.flock(self.only_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MemoryError("there is room for one of us") from None
        self.config = {"work": work, "sleep": sleep + nap, "fault": fault, "fault_step": fault_step, "scale": scale}
        self.device = device
        draw = numpy.random.default_rng(seed)
        self.weight_D, self.target_D = draw.standard_normal((2, width), dtype=numpy.float32)
        self.gradient_D = numpy.zeros(width, dtype=numpy.float32)
        self.ones = numpy.ones
        if tensors:
            import torch

            torch.set_num_threads(1)
            self.weight_D, self.target_D = torch.from_numpy(self.weight_D), torch.from_numpy(self.target_D)
            self.ones = torch.ones
        self.start_D = self.weight_D  # a step replaces it, and never writes into it
        self.ballast = ballast
        self.tokens_per_step = width
        self.steps = 0
        self.loss = 0.0

    @classmethod
    def exact(cls, config):
        return dict(config)

    @classmethod
    def reference(cls, config):
        return dict(config) | {"scale": 1.0}

    def restart(self):
        self.weight_D = self.start_D
        self.steps = 0

    def step(self):
        self.steps += 1
        if self.config["fault"] and self.steps == self.config["fault_step"]:
            self._fail(self.config["fault"])
        scratch = self.ones(self.ballast) if self.ballast else None
        until = time.perf_counter() + self.config["sleep"]
        while time.perf_counter() < until:
            pass
        for _ in range(self.config["work"]):
            difference_D = self.weight_D - self.target_D
            self.gradient_D = difference_D * (2 * self.config["scale"])
        self.loss = float((difference_D * difference_D).sum())
        self.weight_D = self.weight_D - 0.01 * self.gradient_D
        del scratch

    def _fail(self, fault):
        if fault == "raise" or (fault == "needs_less_sleep" and self.config["sleep"] >= 0.03):
            raise ValueError("the step was told to fail")
        if fault == "memory":
            raise MemoryError("the step was told to want more than there is")
        if fault == "allocate":
            numpy.empty(1 << 50, dtype=numpy.uint8)
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "exit":
            os._exit(7)
        if fault == "deaf":
            os.closerange(3, 64)
            time.sleep(3600)
        if fault == "hang":
            time.sleep(3600)
        if fault == "nan":
            self.weight_D = self.weight_D * float("nan")
        if fault == "chatter":
            print("}{ not json, and harmless on standard output", flush=True)
        if fault == "garbage":
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, b"}{ not json\n")
                except OSError:
                    continue

    def synchronize(self):
        pass

    def last_step(self):
        return {"loss": self.loss, "gradient_norm": float((self.gradient_D * self.gradient_D).sum()) ** 0.5}

    def gradients(self):
        return {"weight": self.gradient_D}

    def parameters(self):
        return {"weight": self.weight_D}

    def facts(self):
        return {"threads": 1, "parameters": len(self.weight_D), "dataset": "fixed", "low_precision": "none"}

    def close(self):
        pass
