"""Two lines in a training loop: where a step begins, and what it computed.

    for batch in campaign.steps(loader, tokens=8192):          # or: with campaign.step(tokens=8192):
        loss = train(batch)
        campaign.record(loss=loss)

Outside a campaign's trial they do nothing: `steps` hands back the very object that it was given. Inside one, each step
begins at a gate, where the process waits for its turn. `campaign.gate` has that side, and is imported only there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from campaign.gate import Gate

GATE_VARIABLE = "CAMPAIGN_GATE"  # the socket of the trial that started this process; set by `campaign.launch` only

T = TypeVar("T")
_NOTHING: AbstractContextManager[None] = nullcontext()
_gate: Gate | None = None
_asked = False  # the environment is looked at once: reading it costs more than all the rest


def steps(batches: Iterable[T], *, tokens: int | Callable[[T], int] = 1, every: int = 1) -> Iterable[T]:
    """`batches`, one a training step, or `every` of them where gradients are accumulated over as many. Outside a
    campaign's trial it is the same object, untouched.

    `tokens` is the number of tokens (or samples) of a batch, or a function from a batch to it. Inside a trial the
    batches are begun again when they end, as often as the protocol wants steps; fetching a batch belongs to its step,
    and the last step of an epoch may have fewer batches. Raises RuntimeError inside a trial where they can't be begun
    again.
    """
    gate = entered()
    return batches if gate is None else _gated(gate, batches, tokens, every)


def step(*, tokens: int = 1) -> AbstractContextManager[None]:
    """A context around one training step of `tokens` tokens. Steps reach from one entrance to the next: what the loop
    does between them (fetching a batch, logging) is a part of training too."""
    gate = _gate if _asked else entered()
    if gate is not None:
        gate.arrive(tokens)
    return _NOTHING


def record(*, loss: Any = None, gradient_norm: Any = None, model: Any = None) -> None:
    """Tell what the present step computed: its loss and gradient norm (numbers or one-element tensors, read only when
    no clock runs) and the torch module that is trained, whose gradients and parameters are then compared as well.
    Does nothing outside a campaign's trial."""
    if _gate is not None:
        _gate.record(loss, gradient_norm, model)


def entered() -> Gate | None:
    """The gate of this trial, made at the first step; None outside one."""
    global _asked, _gate
    if not _asked:
        _asked = True
        if address := os.environ.pop(GATE_VARIABLE, ""):  # popped: children are no ranks of their own
            from campaign.gate import Gate

            _gate = Gate(address)
    return _gate


def _gated(gate: Gate, batches: Iterable[T], tokens: int | Callable[[T], int], every: int) -> Iterator[T]:
    nothing: Any = object()
    batch: Any
    iterator, taken = iter(batches), 0
    while True:
        if taken % every == 0:
            gate.arrive()
        if (batch := next(iterator, nothing)) is nothing:
            iterator = iter(batches)
            if taken % every:
                taken = 0
                gate.arrive()
            if (batch := next(iterator, nothing)) is nothing:
                raise RuntimeError(
                    "campaign.steps: the batches ended and cannot be begun again; give it a loader, not an iterator"
                )
        taken += 1
        gate.count(tokens(batch) if callable(tokens) else tokens)
        yield batch
