"""An honest training step in numpy: what every cheat of `cheats.py` edits. Quick to start, and yet a real step.

A residual network of L blocks learns a fixed teacher. With Q a rounding to `bits` mantissa bits (0: none),

    h_0 = x,   a_l = h_l Q(W1_l) + b_l,   h_{l+1} = h_l + Q(relu(a_l)) Q(W2_l),   loss = mean (h_L - y)^2

each step takes `microsteps` batches of R rows of width D (hidden width F), back-propagates by hand through the
rounding as if it were the identity, and ends with one Adam update. Checkpointed blocks keep their input alone and
recompute the rest in the backward pass, into one scratch buffer. The data are `EPOCH` batches, visited in turn.

`work` counts multiplied, summed and rounded elements by thread, so that a test can say without a clock that an edit
does less in `step`. Public methods are those that the harness asks of a workload.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy

EPOCH = 8  # batches in the data
BETAS, TINY = (0.9, 0.95), 1e-8


class Network:
    low_precision = "none"

    def __init__(
        self,
        *,
        device="cpu",
        cheat="",
        seed=0,
        blocks=4,
        width=48,
        hidden=96,
        rows=32,
        microsteps=2,
        bits=0,
        weights="per_use",
        checkpoint=True,
        number="float32",
        learning_rate=1e-2,
        pause=0.0,
    ):
        self.device, self.cheat = device, cheat
        self.blocks, self.microsteps, self.bits = blocks, microsteps, bits
        self.weights, self.checkpoint = weights, checkpoint
        self.learning_rate, self.pause = learning_rate, pause
        self.low_precision = "emulated" if bits else "none"
        self.tokens_per_step = rows * microsteps
        self.number = numpy.dtype(number)
        self.work: Counter[int] = Counter()
        draw = numpy.random.default_rng(seed)
        self.start = {}
        for block in range(blocks):
            self.start[f"up.{block}"] = draw.standard_normal((width, hidden)) / width**0.5
            self.start[f"bias.{block}"] = draw.standard_normal(hidden) * 0.1
            self.start[f"down.{block}"] = draw.standard_normal((hidden, width)) / hidden**0.5
        self.start = {name: value.astype(self.number) for name, value in self.start.items()}
        teacher_DD = draw.standard_normal((width, width)) / width**0.5
        x_NRD = draw.standard_normal((EPOCH * microsteps, rows, width))
        self.x_NRD, self.y_NRD = x_NRD.astype(self.number), numpy.tanh(x_NRD @ teacher_DD).astype(self.number)
        self.value = {name: value.copy() for name, value in self.start.items()}
        self.gradient = {name: numpy.zeros_like(value) for name, value in self.start.items()}
        self.moments = {name: numpy.zeros((2, *value.shape), self.number) for name, value in self.start.items()}
        self.restart()

    def restart(self):
        """Parameters, optimizer and data back to the start, in place."""
        for name, value in self.start.items():
            self.value[name][...] = value
            self.gradient[name][...] = 0
            self.moments[name][...] = 0
        self.steps = 0
        self.loss = self.norm = 0.0
        self.cached: dict[str, numpy.ndarray] = {}

    def step(self):
        self.steps += 1
        if self.pause:
            self.wait(self.pause)
        for gradient in self.gradient.values():
            gradient[...] = 0
        losses = [self.microstep(x_RD, y_RD) for x_RD, y_RD in self.batch()]
        self.loss = sum(losses) / len(losses)
        self.norm = float(sum(float((value * value).sum()) for value in self.gradient.values())) ** 0.5
        self.update()

    def batch(self):
        """The step's microbatches, each (x_RD, y_RD)."""
        first = (self.steps - 1) % EPOCH * self.microsteps
        return [(self.x_NRD[at], self.y_NRD[at]) for at in range(first, first + self.microsteps)]

    def microstep(self, x_RD, y_RD):
        """One forward and backward pass; adds to the gradients and returns the loss."""
        h_RD, kept = x_RD, []
        for block in range(self.blocks):
            h_RD, saved = self.forward(block, h_RD)
            kept.append(saved)
        difference_RD = h_RD - y_RD
        g_RD = difference_RD * (2 / (difference_RD.size * self.microsteps))
        for block in reversed(range(self.blocks)):
            g_RD = self.backward(block, g_RD, kept[block])
        return float((difference_RD * difference_RD).mean())

    def forward(self, block, h_RD):
        """The block's output, and what its backward pass will need: input and, unless checkpointed, hidden values."""
        hidden_RF = self.activate(block, h_RD)
        out_RD = h_RD + self.multiply(self.rounded(hidden_RF), self.weight(f"down.{block}"))
        if self.checkpoint:
            self.scratch_RF = hidden_RF
            return out_RD, (h_RD, None)
        return out_RD, (h_RD, hidden_RF)

    def activate(self, block, h_RD):
        hidden_RF = self.multiply(h_RD, self.weight(f"up.{block}")) + self.value[f"bias.{block}"]
        return numpy.maximum(hidden_RF, 0, out=hidden_RF)

    def backward(self, block, g_RD, saved):
        h_RD, hidden_RF = saved
        if hidden_RF is None:
            hidden_RF = self.recompute(block, h_RD)
        self.add(f"down.{block}", self.rounded(hidden_RF), g_RD)
        g_RF = self.multiply(g_RD, self.weight(f"down.{block}").T) * (hidden_RF > 0)
        self.add(f"up.{block}", h_RD, g_RF)
        self.add_bias(block, g_RF)
        return g_RD + self.multiply(g_RF, self.weight(f"up.{block}").T)

    def recompute(self, block, h_RD):
        self.scratch_RF = self.activate(block, h_RD)
        return self.scratch_RF

    def add(self, name, left_RI, right_RO):
        self.gradient[name] += self.multiply(left_RI.T, right_RO)

    def add_bias(self, block, g_RF):
        self.did(g_RF.size)
        self.gradient[f"bias.{block}"] += g_RF.sum(0)

    def weight(self, name):
        """The weight as the products use it: rounded per use, or once between two updates (`cached`)."""
        if self.weights == "per_use":
            return self.rounded(self.value[name])
        if name not in self.cached:
            self.cached[name] = self.rounded(self.value[name])
        return self.cached[name]

    def rounded(self, array):
        if not self.bits:
            return array
        self.did(array.size)
        fraction, exponent = numpy.frexp(array)
        return numpy.ldexp(numpy.rint(fraction * 2**self.bits) / 2**self.bits, exponent).astype(self.number)

    def update(self):
        """Adam; cached roundings are of the old weights after it."""
        for name in self.value:
            self.update_one(name)
        self.cached.clear()

    def update_one(self, name):
        gradient, (first, second) = self.gradient[name], self.moments[name]
        self.did(8 * gradient.size)
        first += (1 - BETAS[0]) * (gradient - first)
        second += (1 - BETAS[1]) * (gradient * gradient - second)
        mean, square = (moment / (1 - beta**self.steps) for moment, beta in zip((first, second), BETAS, strict=True))
        self.value[name] -= self.learning_rate * mean / (numpy.sqrt(square) + TINY)

    def multiply(self, left_RI, right_IO):
        self.did(left_RI.size * right_IO.shape[1] * self.number.itemsize // 4)
        return left_RI @ right_IO

    def wait(self, seconds):
        self.did(int(seconds * 1e9))
        time.sleep(seconds)

    def did(self, amount):
        self.work[threading.get_ident()] += amount

    def synchronize(self):
        """Everything is done when `step` returns."""

    def last_step(self):
        return {"loss": self.loss, "gradient_norm": self.norm}

    def gradients(self):
        return dict(self.gradient)

    def parameters(self):
        return dict(self.value)

    def facts(self):
        size = sum(value.size for value in self.value.values())
        return {"threads": 1, "parameters": size, "dataset": f"teacher, {EPOCH} batches"}

    def close(self):
        """Nothing is held."""

    @classmethod
    def exact(cls, config):
        return dict(config) | {"bits": 0}

    @classmethod
    def reference(cls, config):
        return dict(config) | {"bits": 0, "checkpoint": False, "weights": "per_use", "cheat": ""}
