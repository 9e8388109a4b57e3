"""The gate in transformers' Trainer, and in the trainers that are made from it."""

from __future__ import annotations

import sys
from typing import Any

from transformers import Trainer, TrainerCallback

from campaign.callbacks.stepping import Stepping, Tokens
from campaign.loop import entered


class HuggingFace(TrainerCallback):
    """Makes each optimizer step of a Trainer a step of the campaign: `Trainer(..., callbacks=[HuggingFace()])`.

    `tokens` is the number of tokens of an optimizer step, or a function from a batch (the mapping that the model is
    called with) to it; without it they are counted, padding included. What is recorded: the loss as the Trainer logs
    it, before it is averaged over logging steps; and the model, whose gradients are read after clipping. The gate is
    where the optimizer has stepped: right behind, the Trainer clears the gradients.

    A callback is not told the loss. While training goes on in a trial, the trainer's `training_step` is therefore one
    that keeps what the trainer's own returned.
    """

    def __init__(self, tokens: Tokens = None) -> None:
        self._stepping = Stepping(tokens)

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if entered() is not None and (trainer := self._trainer()) is not None:
            self._listen(trainer)

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._stepping.begin()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **given: Any) -> None:
        self._stepping.end(model)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if entered() is not None and (trainer := self._trainer()) is not None:
            vars(trainer).pop("training_step", None)

    def _listen(self, trainer: Trainer) -> None:
        own = trainer.training_step

        def training_step(model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
            loss = own(model, inputs, *more, **named)
            self._stepping.add(inputs, loss)
            return loss

        trainer.training_step = training_step  # type: ignore[method-assign]

    def _trainer(self) -> Trainer | None:
        """The trainer that is calling us; None where something else does."""
        frame = sys._getframe(1)
        while frame is not None:
            caller = frame.f_locals.get("self")
            if isinstance(caller, Trainer):
                return caller
            frame = frame.f_back  # type: ignore[assignment]
        return None
