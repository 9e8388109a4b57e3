"""`campaign.measure`: two callables of a notebook or a script, by the same protocol and verdict as a run.

Each round is a fresh process an arm; the callables travel there over the trial's own pipe. Everything goes through a
ledger, which is in a temporary folder unless one is asked for. Heavy packages are imported when it is called.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from campaign.callables import Setup
from campaign.comparison import Comparison
from campaign.errors import BadInput, LeaseHeld
from campaign.records import ParityClaim, Protocol
from campaign.records.plan import NOT_COMPARED

if TYPE_CHECKING:
    from campaign.report.progress import Progress

Step = Callable[[], object]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
LOSS, BITWISE = "loss", "bitwise"
LOSS_BOUND = 0.02
UNKEPT = "measure"  # the campaign's name where no ledger is asked for


def measure(
    control: Step | Setup,
    treatment: Step | Setup,
    *,
    tokens: int = 1,
    device: str = "cpu",
    threads: int = 1,
    name: tuple[str, str] = ("control", "treatment"),
    protocol: str = "standard",
    pairs: int | None = None,
    min_effect: float | None = None,
    settings: Mapping[str, Any] | None = None,
    parity: str | None = None,
    loss_bound: float = LOSS_BOUND,
    ledger: str | Path | None = None,
    wait_seconds: float = 0.0,
    progress: bool = True,
) -> Comparison:
    """Measure whether `treatment` does a step faster than `control`, and return the verdict with its evidence.

    Each is a callable that takes nothing and does one whole step, or a `Setup` whose `make()` builds one in the trial's
    process. A step may return its loss (a number, or a tensor with one element). `tokens` is what a step processes;
    `device` is 'cpu' or 'cuda'; on a CPU each trial is held to `threads` threads and as many cores.

    `protocol` is 'standard' or 'quick' (a first look, which cannot accept); `pairs`, `min_effect` and any other of its
    fields in `settings` take the place of its own. `parity`: 'loss' (each probed step's loss within `loss_bound` of
    control's, relative), 'bitwise', 'none', or None for 'loss' where the steps return one and 'none' where they return
    nothing. `ledger` ('runs/NAME') records it there; without one nothing is written outside a temporary folder.
    `wait_seconds` is how long to wait for another campaign on the device. `progress` says a line a round.

    Raises BadInput for what cannot be measured, before anything is timed, and LeaseHeld. An interrupt ends every trial.
    """
    _refuse_trials()
    names = _names(name)
    for key, value in (("tokens", tokens), ("threads", threads)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            _refuse(f"{key}={value!r}: a whole number, at least 1", f"{key}=1")
    claim = _claim(parity, loss_bound)
    own = {"pairs": pairs, "min_effect": min_effect}
    given = {**(settings or {}), **{key: value for key, value in own.items() if value is not None}}
    rules = _protocol(protocol, device, given, threads)
    from campaign.parcel import pack

    parcels = pack(control, names[0]), pack(treatment, names[1])
    from campaign.run.callables import Question, compare

    with _place(ledger) as (root, campaign), _voice(progress) as voice:
        question = Question(
            control=parcels[0],
            treatment=parcels[1],
            protocol=rules,
            claim=claim,
            loss=ParityClaim(LOSS, bound=loss_bound),
            device=device,
            tokens=tokens,
            threads=threads,
            root=root,
            campaign=campaign,
            kept=ledger is not None,
            wait_seconds=wait_seconds,
        )
        try:
            return compare(question, voice)
        except LeaseHeld as error:
            raise LeaseHeld(error.message, remedy="campaign.measure(..., wait_seconds=600)") from None


def _refuse(message: str, remedy: str) -> NoReturn:
    raise BadInput(message, remedy=f"campaign.measure(..., {remedy})")


def _refuse_trials() -> None:
    """A script that is imported by its own trial must not begin another comparison there."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name == "campaign.worker":
        raise BadInput(
            "campaign.measure was reached inside a trial, while a module was imported there",
            remedy="put the call under if __name__ == '__main__':",
        )


def _names(given: tuple[str, str]) -> tuple[str, str]:
    right = isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(one, str) for one in given)
    if not right or given[0] == given[1]:
        _refuse(f"name={given!r}: two different names, of control and of treatment", "name=('eager', 'fused')")
    for one in given:
        if not NAME.fullmatch(one):
            _refuse(
                f"name={one!r}: letters, digits, '.', '_' and '-', at most 60, beginning with a letter or '_'",
                "name=('eager', 'fused')",
            )
    return given[0], given[1]


def _claim(kind: str | None, bound: float) -> ParityClaim | None:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < 1:
        _refuse(f"loss_bound={bound!r}: a share of control's loss, between 0 and 1", f"loss_bound={LOSS_BOUND}")
    if kind is None:
        return None
    if kind not in (LOSS, BITWISE, NOT_COMPARED):
        _refuse(f"parity={kind!r}: 'loss', 'bitwise' or 'none'", "parity='loss'")
    return ParityClaim(kind, bound=bound) if kind == LOSS else ParityClaim(kind)


def _protocol(name: str, device: str, settings: Mapping[str, Any], threads: int) -> Protocol:
    from campaign.config.packaged import packaged_protocol
    from campaign.config.protocol import DEVICES

    if device not in DEVICES:
        _refuse(f"device={device!r}: 'cpu' or 'cuda'", "device='cpu'")
    try:
        found = packaged_protocol(name, device, settings)
    except BadInput as error:
        error.remedy = error.remedy and f"campaign.measure(..., {_spelled(error.remedy)})"
        raise
    if found.clock == "cpu" and (device != "cpu" or threads != 1):
        _refuse("clock='cpu': CPU time may decide for one thread on the CPU only", "settings={'clock': 'wall'}")
    return found


def _spelled(remedy: str) -> str:
    """A remedy of the config as an argument: 'protocol.pairs=20' is pairs=20, 'protocol=standard' a text."""
    return re.sub(r"^protocol=(\w+)", r"protocol='\1'", remedy).replace("protocol.", "")


@contextmanager
def _place(ledger: str | Path | None) -> Iterator[tuple[Path, str]]:
    """(root, campaign) of the ledger: the one that is asked for, or one in a temporary folder that goes at the end."""
    if ledger is None:
        with tempfile.TemporaryDirectory(prefix="campaign-measure-") as folder:
            yield Path(folder), UNKEPT
        return
    path = Path(ledger).absolute()
    if path.parent.name != "runs":
        _refuse(f"ledger={str(ledger)!r}: a ledger is a folder in runs/", f"ledger='runs/{path.name}'")
    yield path.parent.parent, path.name


@contextmanager
def _voice(progress: bool) -> Iterator[Progress]:
    """Says what goes on: on standard error, in a notebook in the cell's output; nowhere where it is not wanted."""
    from campaign.report.progress import Progress

    if not progress:
        with open(os.devnull, "w") as nowhere:
            yield Progress(output=nowhere, terminal=False)
    elif "ipykernel" in sys.modules:
        yield Progress(output=sys.stdout, terminal=False)
    else:
        yield Progress(output=sys.stderr)
