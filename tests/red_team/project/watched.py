"""A small step in torch, for what only torch shows: counted operators, and a step that knows when they are counted.

A residual chain of `blocks` layers h + relu(h W + b) learns to give back its input reversed; plain gradient descent.
`fused` computes h W + b in one operator. `cheat: unwatched` leaves a layer out unless a dispatch mode looks on.
`cheat: light` leaves out every step after the first one that follows a restart of a timed process, which is pinned:
those are the steps whose memory is measured.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

EPOCH = 8


class Chain:
    low_precision = "none"

    def __init__(self, *, device="cpu", cheat="", seed=0, blocks=4, width=48, rows=64, fused=False, pause=0.0):
        torch.set_num_threads(1)
        self.device, self.cheat, self.fused, self.pause = device, cheat, fused, pause
        self.tokens_per_step = rows
        draw = torch.Generator().manual_seed(seed)
        self.x_NRD = torch.randn(EPOCH, rows, width, generator=draw)
        self.start = {f"weight.{block}": torch.randn(width, width, generator=draw) * 0.1 for block in range(blocks)}
        self.start |= {f"bias.{block}": torch.zeros(width) for block in range(blocks)}
        self.value: dict[str, Any] = {name: value.clone().requires_grad_() for name, value in self.start.items()}
        self.blocks, self.steps = blocks, 0
        self.cores, self.restarts = os.sched_getaffinity(0), 0

    def restart(self):
        self.restarts += 1
        with torch.no_grad():
            for name, value in self.start.items():
                self.value[name].copy_(value)
        self.steps = 0

    def step(self):
        if self.cheat == "light" and self.restarts and self.steps and os.sched_getaffinity(0) != self.cores:
            return
        time.sleep(self.pause)
        x_RD = self.x_NRD[self.steps % EPOCH]
        self.steps += 1
        for value in self.value.values():
            value.grad = None
        h_RD = x_RD
        for block in range(self.blocks):
            if self.cheat == "unwatched" and block == 1 and _get_current_dispatch_mode() is None:
                for name in ("weight.1", "bias.1"):
                    self.value[name].grad = torch.zeros_like(self.value[name])
                continue
            h_RD = h_RD + torch.relu(self.project(h_RD, self.value[f"weight.{block}"], self.value[f"bias.{block}"]))
        self.loss = (h_RD - x_RD.flip(1)).square().mean()
        self.loss.backward()
        gradients = [value.grad for value in self.value.values()]
        self.norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
        with torch.no_grad():
            for value in self.value.values():
                value -= 0.1 * value.grad

    def project(self, h_RD, weight_DD, bias_D):
        return torch.addmm(bias_D, h_RD, weight_DD) if self.fused else h_RD @ weight_DD + bias_D

    def synchronize(self):
        """Everything is done when `step` returns."""

    def last_step(self):
        return {"loss": self.loss.item(), "gradient_norm": self.norm.item()}

    def gradients(self):
        return {name: value.grad for name, value in self.value.items()}

    def parameters(self):
        return {name: value.detach() for name, value in self.value.items()}

    def facts(self):
        return {"threads": 1, "dataset": f"noise, {EPOCH} batches"}

    def close(self):
        """Nothing is held."""

    @classmethod
    def exact(cls, config):
        return dict(config)

    @classmethod
    def reference(cls, config):
        return dict(config) | {"cheat": "", "fused": False}
