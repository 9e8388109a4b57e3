"""Batches into steps: what a callback is told of each batch, told to the gate at the end of the optimizer step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from campaign.loop import entered

Tokens = int | Callable[[Any], int] | None  # of an optimizer step; of a batch; to be counted


class Stepping:
    """The steps of one callback. `begin` comes before every step, `add` for each of its batches, `end` after it; each
    does nothing outside a campaign's trial."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._begun = False
        self._loss: Any = None
        self._seen = 0

    def begin(self) -> None:
        """Wait for the first step's turn; that of each later one is waited for at the end of the one before it."""
        if not self._begun and (gate := entered()) is not None:
            self._begun = True
            gate.arrive()

    def add(self, batch: Any, loss: Any) -> None:
        """One batch was trained on. `loss` is its part of the step's, or None."""
        if not self._begun:
            return
        if not isinstance(self._tokens, int):
            self._seen += (self._tokens or counted)(batch)
        if loss is not None:
            self._loss = loss if self._loss is None else self._loss + loss

    def end(self, model: Any) -> None:
        """The optimizer has stepped and the gradients are still there."""
        if not self._begun or (gate := entered()) is None:
            return
        # What the person counts may be a tensor of a device, which comparing would wait for while the clock runs.
        counts = self._seen if self._tokens is not None else max(1, self._seen)
        gate.count(self._tokens if isinstance(self._tokens, int) else counts)
        gate.record(self._loss, None, model)
        self._loss, self._seen = None, 0
        gate.arrive()


def counted(batch: Any) -> int:
    """Elements of `input_ids`, or of the first tensor where that has whole numbers in two dimensions (token numbers, a
    row a sequence); else the length of the first tensor, which is samples. Padding counts. 0 without a tensor."""
    first = _first(batch)
    if first is None:
        return 0
    whole = not (first.is_floating_point() or first.is_complex())
    return int(first.numel()) if whole and first.dim() == 2 else int(first.shape[0]) if first.dim() else 1


def _first(batch: Any) -> Any:
    """The first tensor in a batch of mappings and sequences; `input_ids` before others."""
    if hasattr(batch, "is_floating_point"):
        return batch
    if isinstance(batch, Mapping):
        parts: Iterable[Any] = [batch["input_ids"]] if "input_ids" in batch else batch.values()
    else:
        parts = batch if isinstance(batch, list | tuple) else ()
    return next((found for part in parts if (found := _first(part)) is not None), None)
