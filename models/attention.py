"""Causal softmax attention, in the blocks that are not recurrent.

Heads are `value_width` wide. There is no position code: the recurrent blocks before it carry the order of tokens.
Shapes: B sequences, T tokens, D width, H heads, V head width, E = 3 H V channels of q, k and v together.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from models.config import ModelConfig
from models.precision import Precision, Projection
from models.recompute import Kept


class Attention(nn.Module):
    """y_BTD (normed) to the block's addition to the residual stream, [B, T, D]."""

    def __init__(self, shape: ModelConfig, precision: Precision) -> None:
        super().__init__()
        self.precision, self.heads = precision, shape.heads
        values = shape.heads * shape.value_width
        self.into = Projection("attention_in", shape.width, 3 * values)
        self.out = Projection("attention_out", values, shape.width, gain=(2 * shape.layers) ** -0.5)

    def forward(self, y_BTD: Tensor, kept: Kept | None = None) -> Tensor:
        qkv_BTE = self.precision.project(y_BTD, self.into, kept)
        q_BHTV, k_BHTV, v_BHTV = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkv_BTE.chunk(3, dim=-1)
        )
        o_BHTV = F.scaled_dot_product_attention(q_BHTV, k_BHTV, v_BHTV, is_causal=True)
        return self.precision.project(o_BHTV.transpose(1, 2).flatten(-2), self.out, kept)
