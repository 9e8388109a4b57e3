"""The gate in Lightning's Trainer, of the package `lightning` or `pytorch_lightning`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from campaign.callbacks.stepping import Stepping, Tokens

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callbacks() -> tuple[type, ...]:
    """The Callback of the package that the script has imported, or of the first that is here."""
    names = [name for name in PACKAGES if name in sys.modules]
    names = names or [name for name in PACKAGES if importlib.util.find_spec(name.split(".")[0])][:1]
    return tuple(importlib.import_module(name).Callback for name in names or PACKAGES[:1])


class Lightning(*_callbacks()):  # type: ignore[misc]
    """Makes each optimizer step of a Trainer a step of the campaign: `Trainer(..., callbacks=[Lightning()])`.

    `tokens` is the number of tokens of an optimizer step, or a function from a batch to it; without it they are
    counted, padding included. What is recorded: the loss that `training_step` returned (divided by the batches that
    are accumulated, as Lightning trains on it), and the LightningModule, whose gradients are read after clipping. The
    gate is at the end of the batch in which the optimizer stepped.
    """

    def __init__(self, tokens: Tokens = None) -> None:
        self._stepping = Stepping(tokens)
        self._step = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step  # of a training that goes on, not 0

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._stepping.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._stepping.add(batch, outputs.get("loss") if isinstance(outputs, dict) else outputs)
        if trainer.global_step != self._step:  # else its gradients are kept for the next batch
            self._step = trainer.global_step
            self._stepping.end(pl_module)
