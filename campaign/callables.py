"""A Python callable as a workload: what `campaign.measure` times. Runs in the trial's process.

The callable travels pickled in the arm's config, over the trial's own pipe: it is never on disk, and a ledger keeps its
digest alone. It is unpickled once to start and once more for a restart, so that both begin from the state in which
`campaign.measure` met it, with the random generators of `random`, numpy and torch seeded.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import pickle
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 20260101
STARTS = 3  # of which each but the first is for a generator that was only imported in the one before
NOT_A_STEP = "not a step: "
WHAT_TO_RETURN = "return the loss (a number, or a tensor with one element), or nothing"


@dataclass(frozen=True)
class Setup:
    """For a step that needs what cannot travel to another process, or should not: `make()` is called in each trial's
    own process and returns the step. Open files, loaders, models and optimizers belong in `make`."""

    make: Callable[[], Callable[[], object]]


class NotAStep(Exception):
    """The callable came through, and cannot be stepped. The worker makes a failed trial of it, with the remedy."""

    kind = "crashed"

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = NOT_A_STEP + reason
        self.remedy = remedy


class CallableStep:
    """The workload that `campaign.measure` builds of one callable.

    `pickled` (base64) and `path` (the caller's `sys.path`) are not in what is recorded; `sha256` is the digest of the
    pickle. `sources` maps the caller's own modules that the pickle refers to by name to the digests of their files.
    `setup` says that the pickle holds a `Setup`.
    """

    low_precision = "none"

    def __init__(
        self,
        *,
        device: str,
        tokens: int,
        threads: int,
        name: str,
        sha256: str,
        setup: bool,
        sources: Mapping[str, str],
        pickled: str = "",
        path: Sequence[str] = (),
    ) -> None:
        if not pickled:
            raise NotAStep(
                f"a ledger keeps the digest of {name} and never the callable itself",
                "call campaign.measure again, from where it was called",
            )
        self.device = device
        self.tokens_per_step = tokens
        self._threads = threads
        self._name = name
        self._pickled = base64.b64decode(pickled)
        self._sources = sources
        self._value: Any = None
        sys.path[:] = [*path, *(place for place in sys.path if place not in path)]
        import numpy  # noqa: F401  the worker does it later; then its generator would be seeded at a restart alone

        self._begin()
        if setup or not sources:
            self.restart = self._begin  # a module of the caller's keeps its state, which nothing here could put back

    def step(self) -> None:
        self._value = None  # what it holds is given back before the next step, as in a loop of the caller's own
        self._value = self._step()

    def synchronize(self) -> None:
        if self.device.startswith("cuda"):
            sys.modules["torch"].cuda.synchronize()

    def last_step(self) -> dict[str, float | None]:
        return {"loss": self._loss(), "gradient_norm": None}

    def gradients(self) -> dict[str, Any]:
        return {}

    def parameters(self) -> dict[str, Any]:
        return {}

    def facts(self) -> dict[str, Any]:
        return {"threads": self._threads, "dataset": None, "low_precision": self.low_precision}

    def close(self) -> None:
        pass

    def _begin(self) -> None:
        if self.device.startswith("cuda"):
            import torch  # noqa: F401  whatever the step does, its device is synchronised
        for _ in range(STARTS):
            seeded = self._seed()
            self._value = None
            self._step = self._unpickled()
            if seeded == self._generators():
                break
        self._seed()  # once more: the first step draws the same, however many numbers building it took
        self._check_sources()

    def _generators(self) -> set[str]:
        return {"numpy", "torch"} & sys.modules.keys()

    def _seed(self) -> set[str]:
        """Seed every generator that is there; which those are, beside Python's own."""
        found = self._generators()
        random.seed(SEED)
        if "numpy" in found:
            sys.modules["numpy"].random.seed(SEED)
        if "torch" in found:
            torch = sys.modules["torch"]
            torch.manual_seed(SEED)
            if not self.device.startswith("cuda"):
                torch.set_num_threads(self._threads)
        return found

    def _unpickled(self) -> Callable[[], object]:
        try:
            found = pickle.loads(self._pickled)
        except Exception as error:
            raise NotAStep(
                f"{self._name} cannot be rebuilt in a fresh process: {type(error).__name__}: {error}",
                "campaign.Setup(make): import and build what it needs inside make()",
            ) from error
        if not isinstance(found, Setup):
            return found  # type: ignore[no-any-return]
        step = found.make()
        if not callable(step):
            raise NotAStep(
                f"the make() of {self._name} returned {_kind(step)}, and the step is what it must return",
                "return the function that does one step",
            )
        return step

    def _check_sources(self) -> None:
        for name, sha256 in self._sources.items():
            file = getattr(sys.modules.get(name), "__file__", None)
            if file and digest(Path(file)) != sha256:
                raise NotAStep(
                    f"{name} ({file}) is not what it was when the comparison began",
                    "leave the sources alone while they are measured, and measure again",
                )

    def _loss(self) -> float | None:
        value = self._value
        if value is None:
            return None
        try:
            if isinstance(value, str | bytes):
                raise TypeError("a text is no number")
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            if inspect.isawaitable(value) or inspect.isgenerator(value):
                said = "which has done no work yet"
            else:
                said = "which is not one number"
            raise NotAStep(f"{self._name} returned {_kind(value)}, {said}", WHAT_TO_RETURN) from None


def digest(file: Path) -> str:
    """SHA-256 of a file; empty for one that cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _kind(value: object) -> str:
    """'a Tensor of shape [4, 5]', 'a generator'."""
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return f"{article} {name}" + (f" of shape {list(shape)}" if shape is not None else "")
