"""A search over the parameters of one hypothesis with Optuna's sweeper: what may be asked of it.

    campaign -m hydra/sweeper=optuna hypothesis=register_cap 'register_cap.registers=range(4,17,4)'

The best of several noisy numbers is too good (the winner's curse), and a hypothesis that was accepted would be in the
control of the values that come after. So the values get first looks, which can't accept, and what the protocol that
was asked for decides is the best of them alone, on rounds of its own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.core.override_parser.types import Override

from campaign.config.app import Line, checked, each_job
from campaign.config.edits import parse
from campaign.config.job import Job
from campaign.config.load import load
from campaign.errors import BadInput

FIRST_LOOK = "protocol=quick"
PLUGIN = "hydra_plugins.hydra_optuna_sweeper"
# One after another, since each value may learn from the one before; a value without a number costs itself only.
ALWAYS = ("hydra.sweeper.n_jobs=1", "hydra.sweeper.direction=maximize", "hydra.sweeper.max_failure_rate=1.0")
SAMPLER = "hydra/sweeper/sampler"
THEIRS = ("hydra.sweeper.n_trials", "hydra.sweeper.sampler.")


@dataclass(frozen=True)
class Search:
    """What was asked for. `line` is the command line of the first looks; `asked` is the job at the hypothesis's own
    parameters under the protocol that was asked for, and `protocol` the override that chose it."""

    line: Line
    asked: Job
    protocol: tuple[str, ...]

    def each(self, act: Callable[[list[str]], float | None]) -> None:
        """Call `act` with the overrides of one first look after another; what it returns is maximized."""
        chosen = {parse(text).key_or_group: text for text in self.line.overrides}
        more = list(ALWAYS)
        seed = "hydra.sweeper.sampler.seed"
        if seed not in chosen and not chosen.get(SAMPLER, "").endswith("=grid"):
            more.append(f"{seed}={self.asked.protocol.seed}")  # an interrupted search asks for the same values again
        each_job(self.asked.root, self.line, more, act)

    def job(self, overrides: Sequence[str]) -> Job:
        """The job of one first look. Raises BadInput or UnknownName for values that cannot be run."""
        return self._load(overrides)

    def decisive(self, overrides: Sequence[str]) -> Job:
        """The same values under the protocol that was asked for."""
        return self._load([*(text for text in overrides if text != FIRST_LOOK), *self.protocol])

    def _load(self, overrides: Sequence[str]) -> Job:
        asked = self.asked
        return load(asked.root, list(overrides), json=asked.json, searchpath=asked.composer.searchpath)


def is_search(line: Line) -> bool:
    """Whether the command line asks for Optuna's sweeper."""
    return any(text.split("=", 1)[0] == "hydra/sweeper" and text.endswith("=optuna") for text in line.overrides)


def search_for(root: Path, line: Line) -> Search:
    """The search that the command line asks for, checked. Raises BadInput, UnknownName."""
    _, folders, overrides = checked(root, line)
    if importlib.util.find_spec("hydra_plugins") is None or importlib.util.find_spec(PLUGIN) is None:
        raise BadInput("hydra/sweeper=optuna needs hydra-optuna-sweeper", remedy="pip install 'campaign[optuna]'")
    parsed = [(text, parse(text)) for text in overrides]
    _check_settings(parsed)
    swept = [(text, one) for text, one in parsed if one.is_sweep_override()]
    fixed = [text for text, one in parsed if not one.is_sweep_override() and not _of_hydra(one)]
    asked = load(root, fixed, json=line.json, searchpath=folders)
    name = asked.hypothesis.name
    for text, one in swept:
        if not one.key_or_group.startswith(f"{name}."):
            raise BadInput(
                f"{text!r}: a search is over the parameters of one hypothesis, here {name}",
                remedy=f"campaign -m {text}    (without hydra/sweeper: a run for each)",
            )
    if not swept:
        raise BadInput(
            f"there is nothing to search: no parameter of {name} has a range",
            remedy=f"'{name}.{next(iter(asked.parameters), 'NAME')}=range(A,B,STEP)'",
        )
    protocol = tuple(text for text in fixed if text.split("=", 1)[0] == "protocol")
    if asked.protocol.decisive:
        line = replace(line, overrides=(*(text for text in line.overrides if text not in protocol), FIRST_LOOK))
    return Search(line, asked, protocol)


def _of_hydra(one: Override) -> bool:
    return one.key_or_group.startswith(("hydra.", "hydra/"))


def _check_settings(parsed: Sequence[tuple[str, Override]]) -> None:
    """Raises BadInput for a setting of the sweeper that is not the person's to choose here."""
    for text, one in parsed:
        key = one.key_or_group
        if key.startswith("hydra.sweeper.") and not key.startswith(THEIRS):
            raise BadInput(
                f"{text!r}: a search here may set hydra.sweeper.n_trials, {SAMPLER} and hydra.sweeper.sampler.KEY; it"
                " maximizes the ratio, runs one job at a time, and goes on from the ledger when interrupted",
                remedy=f"leave {key} out",
            )
