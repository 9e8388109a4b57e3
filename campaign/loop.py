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
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
    return batches if gate is None else _Batches(gate, batches, tokens, every)


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
    Several calls in one step are put together; before the first step only the model is kept. Does nothing outside a
    campaign's trial."""
    gate = _gate if _asked else entered()
    if gate is not None:
        gate.record(loss, gradient_norm, model)


def entered() -> Gate | None:
    """The gate of this trial, made at the first step; None outside one."""
    global _asked, _gate
    if not _asked:
        _asked = True
        if address := os.environ.pop(GATE_VARIABLE, ""):  # popped: children are no ranks of their own
            from campaign.gate import Gate

            _gate = Gate(address)
            os.register_at_fork(after_in_child=_leave)
    return _gate


class _Batches(Generic[T]):
    """What `steps` gives inside a trial. All but the iteration is the loader's own: a loop may ask for its length, call
    `next` on it or use its attributes, as it does outside."""

    def __init__(self, gate: Gate, batches: Iterable[T], tokens: int | Callable[[T], int], every: int) -> None:
        self._given = (gate, batches, tokens, every)
        self._going: Iterator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        return _gated(*self._given)

    def __next__(self) -> T:
        if self._going is None:
            self._going = iter(self)
        return next(self._going)

    def __len__(self) -> int:
        return len(self._given[1])  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._given[1])

    def __getattr__(self, name: str) -> Any:
        if name == "_given":  # of a copy that is still empty
            raise AttributeError(name)
        return getattr(self._given[1], name)


def _leave() -> None:
    """In a forked child of the trial's process, which is no rank, it is as outside."""
    global _gate
    _gate = None


def _gated(gate: Gate, batches: Iterable[T], tokens: int | Callable[[T], int], every: int) -> Iterator[T]:
    nothing: Any = object()
    batch: Any
    iterator, taken = iter(batches), 0
    while True:
        if taken % every == 0:
            gate.arrive()
        if (batch := next(iterator, nothing)) is nothing:
            if gate.left:
                return
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
