"""The same step as a class: way 4."""

from __future__ import annotations

from typing import Any

import torch
from model import SEQUENCES, TOKENS, flags, forever, loader, model, optimizer, step


class Step:
    """Whole training steps of the model, by the same flags that the scripts take."""

    low_precision = "none"
    tokens_per_step = SEQUENCES * TOKENS

    def __init__(self, *, name: str, device: str, flags: dict[str, Any]) -> None:
        self.device = device
        self._given = _parsed(flags)
        self.net = model(self._given)
        self._adamw = optimizer(self._given, self.net)
        self._prepared = torch.compile(self.net) if self._given.compile else self.net
        self._batches = forever(loader(self._given))
        self._last: dict[str, Any] = {}

    def step(self) -> None:
        loss, norm = step(self._given, self._prepared, self._adamw, next(self._batches))
        self._last = {"loss": loss, "gradient_norm": norm}

    def synchronize(self) -> None:
        """On a CPU a step is done when it returns."""

    def last_step(self) -> dict[str, Any]:
        return {name: value.item() for name, value in self._last.items()}

    def gradients(self) -> dict[str, torch.Tensor]:
        return {name: one.grad for name, one in self.net.named_parameters() if one.grad is not None}

    def parameters(self) -> dict[str, torch.Tensor]:
        return dict(self.net.named_parameters())

    def facts(self) -> dict[str, Any]:
        return {"threads": torch.get_num_threads() + self._given.workers}  # a core for each

    def close(self) -> None:
        """The process ends."""


def _parsed(values: dict[str, Any]) -> Any:
    words = [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in values.items() if value is not False
    ]
    return flags().parse_args(words)
