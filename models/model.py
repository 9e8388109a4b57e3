"""The whole model: embedding, blocks, last norm, head, loss.

Shapes: B sequences, T tokens, D width, O vocabulary, M = B * T rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention import Attention
from models.block import Block, Norm, compiled_block
from models.config import WorkloadConfig
from models.mixer import Mixer
from models.mlp import Mlp
from models.ops import prenorm_of, recurrence_of
from models.precision import Precision, Projection
from models.recompute import recomputed

# Logits that live at once, in elements: 256 MiB of float32.
_LOGITS_AT_ONCE = 64 * 1024 * 1024


class Model(nn.Module):
    """A hybrid language model over bytes; a vocabulary above 256 leaves the further rows unused."""

    def __init__(self, config: WorkloadConfig, precision: Precision) -> None:
        super().__init__()
        shape, checkpoint, prenorm = config.model, config.checkpoint, prenorm_of(config.ops)
        recurrence = recurrence_of(config.ops)
        compiled = compiled_block(config.device) if config.compile == "block" else None
        self.precision = precision
        self.embedding_OD = nn.Parameter(torch.empty(shape.vocabulary, shape.width))
        self.blocks = nn.ModuleList()
        for index in range(shape.layers):
            mix: nn.Module
            if shape.is_attention(index):
                mix = Attention(shape, precision)
            else:
                mix = Mixer(shape, precision, recurrence)
            recompute = checkpoint.policy if index < checkpoint.blocks(shape.layers) else "none"
            self.blocks.append(Block(mix, Mlp(shape, precision), shape.width, prenorm, precision, recompute, compiled))
        self.last_norm = Norm(shape.width, prenorm)
        self.head = Projection("head", shape.width, shape.vocabulary)

    def initialize(self, seed: int) -> None:
        """Fills every parameter from one CPU generator, in the order of definition, whatever the ops and formats."""
        generator = torch.Generator().manual_seed(seed)
        nn.init.normal_(self.embedding_OD, std=1.0, generator=generator)
        for module in self.modules():
            if isinstance(module, (Projection, Norm, Mixer)):
                module.initialize(generator)

    def hidden(self, inputs_BT: Tensor) -> Tensor:
        """Byte values (int64) to the normed activation before the head, [B, T, D]."""
        x_BTD = F.embedding(inputs_BT, self.embedding_OD).to(self.precision.activation_dtype)
        residual_BTD = torch.zeros_like(x_BTD)
        for block in self.blocks:
            x_BTD, residual_BTD = block(x_BTD, residual_BTD)
        y_BTD, _ = self.last_norm(x_BTD, residual_BTD)
        return y_BTD

    def forward(self, inputs_BT: Tensor) -> Tensor:
        """logits_BTO in float32."""
        return self.precision.project(self.hidden(inputs_BT), self.head).float()

    def loss(self, inputs_BT: Tensor, targets_BT: Tensor) -> Tensor:
        """Mean cross-entropy of the next byte, in nats.

        Where all logits would take more than 256 MiB they are made, reduced and dropped in pieces of rows, forward
        and backward.
        """
        y_MD, targets_M = self.hidden(inputs_BT).flatten(0, 1), targets_BT.flatten()
        rows = max(128, _LOGITS_AT_ONCE // self.head.weight.shape[0] // 128 * 128)
        if y_MD.shape[0] <= rows:
            return self._loss_sum(y_MD, targets_M) / targets_M.numel()
        sums = [
            recomputed(self._loss_sum, (y, targets), (self.head.weight,))
            for y, targets in zip(y_MD.split(rows), targets_M.split(rows), strict=True)
        ]
        return torch.stack(sums).sum() / targets_M.numel()

    def _loss_sum(self, y_MD: Tensor, targets_M: Tensor) -> Tensor:
        return F.cross_entropy(self.precision.project(y_MD, self.head).float(), targets_M, reduction="sum")
