"""What is asked of a profile, beside the profile itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class IdeaClaim:
    """A hypothesis of the project, as far as a profile can look at it: `acts_on` is a family, a group of families,
    `dispatch`, or `kernel:REGEX`; `predicted_ratio` what it says that it will win on the whole step."""

    name: str
    acts_on: str
    predicted_ratio: float


@dataclass(frozen=True)
class Question:
    """`steps` is how many whole steps the captured range holds, where the person knows better than the trace.
    `window` names an annotation: the range is from its first start to its last end. `target` is the whole speedup
    wanted, above 1. `rules` are the project's own family rules, asked before the built-in ones. `floor` is d: what this
    machine resolves is 1 + d."""

    steps: int | None = None
    window: str | None = None
    target: float | None = None
    rules: Sequence[Mapping[str, str]] = ()
    ideas: Sequence[IdeaClaim] = ()
    floor: float | None = None
    floor_source: str = ""
