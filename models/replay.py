"""One microstep (forward and backward), run as it is or replayed from a CUDA graph.

Gradients add up in the parameters' `.grad` over the microsteps of a step. Shapes: B sequences, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.config import BatchConfig
from models.model import Model

_WARM_UP_MICROSTEPS = 3


class Microstep:
    """Adds this microbatch's share of the step's mean gradient and returns its share of the mean loss."""

    def __init__(self, model: Model, batch: BatchConfig) -> None:
        self.model, self.batch = model, batch

    def __call__(self, inputs_BT: Tensor, targets_BT: Tensor) -> Tensor:
        loss = self.model.loss(inputs_BT, targets_BT) / self.batch.microsteps
        loss.backward()
        return loss.detach()

    def clear_gradients(self) -> None:
        """Drops the gradients; the first microstep then stores instead of adding."""
        for parameter in self.model.parameters():
            parameter.grad = None

    def close(self) -> None:
        self.clear_gradients()


class ReplayedMicrostep(Microstep):
    """The same microstep captured once in a CUDA graph.

    Inputs, targets, loss and gradients live at fixed addresses. Warm-up and capture share one side stream, as
    autograd's accumulation remembers the stream it first ran on.
    """

    def __init__(self, model: Model, batch: BatchConfig, device: torch.device) -> None:
        super().__init__(model, batch)
        shape = (batch.sequences, batch.tokens)
        self._inputs_BT = torch.zeros(shape, dtype=torch.int64, device=device)
        self._targets_BT = torch.zeros(shape, dtype=torch.int64, device=device)
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP_MICROSTEPS):
                super().__call__(self._inputs_BT, self._targets_BT)
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=side):
            self._loss = super().__call__(self._inputs_BT, self._targets_BT)

    def __call__(self, inputs_BT: Tensor, targets_BT: Tensor) -> Tensor:
        self._inputs_BT.copy_(inputs_BT, non_blocking=True)
        self._targets_BT.copy_(targets_BT, non_blocking=True)
        self._graph.replay()
        return self._loss.clone()  # the next replay overwrites it

    def clear_gradients(self) -> None:
        """Zeroes the gradients in place: the graph writes to their addresses."""
        torch._foreach_zero_([p.grad for p in self.model.parameters() if p.grad is not None])

    def close(self) -> None:
        self._graph.reset()
        super().clear_gradients()
