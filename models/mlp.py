"""The gated MLP: down(silu(gate(y)) * up(y)), known as SwiGLU (Shazeer, 2020, arXiv:2002.05202).

Shapes: B sequences, T tokens, D width, F feed-forward width.
"""

from __future__ import annotations

from torch import Tensor, nn

from models.config import ModelConfig
from models.precision import Precision, Projection
from models.recompute import Kept


class Mlp(nn.Module):
    """y_BTD (normed) to the block's addition to the residual stream, [B, T, D]."""

    def __init__(self, shape: ModelConfig, precision: Precision) -> None:
        super().__init__()
        self.precision = precision
        self.gate = Projection("mlp_up", shape.width, shape.ff_width)
        self.up = Projection("mlp_up", shape.width, shape.ff_width)
        self.down = Projection("mlp_down", shape.ff_width, shape.width, gain=(2 * shape.layers) ** -0.5)

    def forward(self, y_BTD: Tensor, kept: Kept | None = None) -> Tensor:
        gate_BTF, up_BTF = self.precision.fan_out(y_BTD, self.gate, self.up, kept=kept)
        return self.precision.gated(gate_BTF, up_BTF, self.down, kept)
