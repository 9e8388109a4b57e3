"""The recurrent mixer: project, short causal convolution, gated linear recurrence, output gate, project.

Shapes: B sequences, T tokens, D width, H heads, K key width, V value width, E = H (2K + V) channels of q, k and v
together, P taps of the convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import ModelConfig
from models.ops import Recurrence
from models.precision import Precision, Projection
from models.recompute import Kept

# Heads start with memories from about 8 to 512 tokens.
_MEMORY_TOKENS = (8.0, 512.0)


def causal_convolution(x_BTE: Tensor, taps_PE: Tensor) -> Tensor:
    """y_t = sum over p of taps_p * x_(t - P + 1 + p), channel by channel, zeros before the start.

    Shifted multiply-adds on the [B, T, E] layout: half the time of conv1d on a CPU, which wants [B, E, T].
    """
    return _CausalConvolution.apply(x_BTE, taps_PE.to(x_BTE.dtype))


class _CausalConvolution(torch.autograd.Function):
    """With its backward written out: autograd's would add up one zero-filled gradient for every tap."""

    @staticmethod
    def forward(ctx: Any, x_BTE: Tensor, taps_PE: Tensor) -> Tensor:
        ctx.save_for_backward(x_BTE, taps_PE)
        before = F.pad(x_BTE, (0, 0, taps_PE.shape[0] - 1, 0))
        return _shifted_sum(before, taps_PE.unbind(), x_BTE.shape[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (dy_BTE,) = gradients
        x_BTE, taps_PE = ctx.saved_tensors
        tokens, past = x_BTE.shape[1], taps_PE.shape[0] - 1
        before, after = F.pad(x_BTE, (0, 0, past, 0)), F.pad(dy_BTE, (0, 0, 0, past))
        dx_BTE = _shifted_sum(after, taps_PE.unbind()[::-1], tokens)
        dtaps = [(before[:, p : p + tokens] * dy_BTE).sum((0, 1)) for p in range(past + 1)]
        return dx_BTE, torch.stack(dtaps)


def _shifted_sum(padded: Tensor, taps: Sequence[Tensor], tokens: int) -> Tensor:
    total = padded[:, :tokens] * taps[0]
    for p in range(1, len(taps)):
        total.addcmul_(padded[:, p : p + tokens], taps[p])
    return total


class Mixer(nn.Module):
    """y_BTD (normed) to the block's addition to the residual stream, [B, T, D]."""

    def __init__(self, shape: ModelConfig, precision: Precision, recurrence: Recurrence) -> None:
        super().__init__()
        self.precision, self.recurrence = precision, recurrence
        self.heads, self.chunk = shape.heads, shape.chunk
        self.widths = (shape.heads * shape.key_width, shape.heads * shape.key_width, shape.heads * shape.value_width)
        channels, values = sum(self.widths), self.widths[2]
        self.into = Projection("mixer_in", shape.width, channels)
        self.gate = Projection("mixer_gate", shape.width, values)
        self.decay = Projection("mixer_decay", shape.width, shape.heads)
        self.out = Projection("mixer_out", values, shape.width, gain=(2 * shape.layers) ** -0.5)
        self.taps_PE = nn.Parameter(torch.empty(shape.convolution_width, channels))
        self.decay_bias_H = nn.Parameter(torch.empty(shape.heads))

    def initialize(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.taps_PE, std=self.taps_PE.shape[0] ** -0.5, generator=generator)
        memory_H = torch.logspace(math.log2(_MEMORY_TOKENS[0]), math.log2(_MEMORY_TOKENS[1]), self.heads, base=2.0)
        with torch.no_grad():
            self.decay_bias_H.copy_(torch.logit(1 - 1 / memory_H))

    def forward(self, y_BTD: Tensor, kept: Kept | None = None) -> Tensor:
        qkv_BTE, gate_BTE, decay_BTH = self.precision.fan_out(y_BTD, self.into, self.gate, self.decay, kept=kept)
        qkv_BTE = F.silu(causal_convolution(qkv_BTE, self.taps_PE))
        q_BTHK, k_BTHK, v_BTHV = (part.unflatten(-1, (self.heads, -1)) for part in qkv_BTE.split(self.widths, dim=-1))
        log_decay_BTH = F.logsigmoid(decay_BTH.float() + self.decay_bias_H)
        q_BTHK = q_BTHK * q_BTHK.shape[-1] ** -0.5
        o_BTHV = self.recurrence(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, self.chunk)
        return self.precision.gated(gate_BTE, o_BTHV.flatten(-2), self.out, kept)
