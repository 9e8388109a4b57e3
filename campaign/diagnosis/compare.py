"""Two bounded ranges side by side, per step: what is launched, and what changed (case G's launch audit).

Durations under a profiler are no speedup, and nothing here calls them one. What can be compared is what ran: launches
of each family and kernel in a step, and where traced time went. A small total can hide a large targeted change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from campaign import units
from campaign.diagnosis.busy import Busy, sweep
from campaign.diagnosis.families import Classifier
from campaign.diagnosis.found import Change, Comparison, Steps
from campaign.diagnosis.names import normal
from campaign.diagnosis.question import Question
from campaign.diagnosis.ranges import window_of
from campaign.diagnosis.steps import find_steps
from campaign.traces import Timeline
from campaign.traces.timeline import Notice

SPEEDUP_COMMAND = "campaign hypothesis=NAME"


@dataclass(frozen=True)
class _Side:
    timeline: Timeline
    busy: Busy
    steps: Steps
    notices: list[Notice]

    @property
    def divisor(self) -> int:
        return self.steps.count or 1

    def kernels(self) -> dict[str, tuple[str, int, int]]:
        """Family, launches and ns of each normal name."""
        found: dict[str, tuple[str, int, int]] = {}
        for place in self.busy.names():
            name = normal(self.timeline.names[place]) or self.timeline.names[place]
            family = self.busy.families[self.busy.family[place]]
            _, launches, length = found.get(name, ("", 0, 0))
            found[name] = (
                family,
                launches + int(self.busy.launches[place]),
                length + int(self.busy.summed_ns[place]),
            )
        return found


def compare(
    before: Timeline, after: Timeline, before_question: Question, after_question: Question, hypothesis: str = "NAME"
) -> Comparison:
    """What changed from one trace to the other. Raises BadInput for a range that a trace does not have."""
    classifier = Classifier(before_question.rules)
    one, two = _side(before, before_question, classifier), _side(after, after_question, classifier)
    matched, why = _matched(one, two)
    steps = (one.divisor, two.divisor) if matched else (1, 1)
    counted = _counted(one, two)
    kernels = tuple(sorted((part.change(steps) for part in counted), key=_size, reverse=True))
    families = tuple(
        sorted(
            (part.change(steps) for part in _by_family(counted)),
            key=lambda change: -max(change.before_ns, change.after_ns),
        )
    )
    total = _added(counted, "total").change(steps)
    unit = "a step" if matched else "in the range"
    return Comparison(
        before=before.source,
        after=after.source,
        before_steps=one.steps,
        after_steps=two.steps,
        total=total,
        families=families,
        kernels=kernels,
        appeared=tuple(change.name for change in kernels if not change.before_launches),
        vanished=tuple(change.name for change in kernels if not change.after_launches),
        matched=matched,
        why=why,
        sentence=_sentence(total, families, kernels, unit, classifier),
        speedup_command=f"campaign hypothesis={hypothesis}" if hypothesis != "NAME" else SPEEDUP_COMMAND,
        notices=(*before.notices, *one.notices, *after.notices, *two.notices),
    )


def _side(timeline: Timeline, question: Question, classifier: Classifier) -> _Side:
    window, notices = window_of(timeline, question.window)
    busy = sweep(timeline, classifier.family, window)
    return _Side(timeline, busy, find_steps(timeline, busy, question.steps, question.window), notices)


@dataclass(frozen=True)
class _Counted:
    """Launches and ns of both whole ranges: what is added up stays in whole numbers until it is divided by steps."""

    name: str
    family: str
    before: tuple[int, int]
    after: tuple[int, int]

    def change(self, steps: tuple[int, int]) -> Change:
        (launches, length), (later, later_length) = self.before, self.after
        before, after = steps
        return Change(self.name, self.family, launches / before, later / after, length / before, later_length / after)


def _counted(one: _Side, two: _Side) -> list[_Counted]:
    before, after = one.kernels(), two.kernels()
    nothing = ("", 0, 0)
    found = []
    for name in dict.fromkeys((*before, *after)):
        (family, *counts), (other, *later) = before.get(name, nothing), after.get(name, nothing)
        found.append(_Counted(name, family or other, (counts[0], counts[1]), (later[0], later[1])))
    return found


def _added(counted: Sequence[_Counted], name: str, family: str = "") -> _Counted:
    return _Counted(
        name,
        family,
        (sum(one.before[0] for one in counted), sum(one.before[1] for one in counted)),
        (sum(one.after[0] for one in counted), sum(one.after[1] for one in counted)),
    )


def _by_family(counted: Sequence[_Counted]) -> list[_Counted]:
    found: dict[str, list[_Counted]] = {}
    for one in counted:
        found.setdefault(one.family, []).append(one)
    return [_added(ones, family, family) for family, ones in found.items()]


def _size(change: Change) -> tuple[float, float]:
    return (abs(change.after_ns - change.before_ns), abs(change.after_launches - change.before_launches))


def _matched(one: _Side, two: _Side) -> tuple[bool, str]:
    for name, side in (("before", one), ("after", two)):
        if side.steps.count is None or not side.steps.attributable:
            return False, f"{name}: {side.steps.why}; figures are of the whole range"
    if one.busy.range_ns and all(device.is_cpu for device in one.timeline.devices) != all(
        device.is_cpu for device in two.timeline.devices
    ):
        return False, "one trace is of a device and the other of a CPU: they compare nothing"
    return True, f"before: {one.steps.why}; after: {two.steps.why}"


def _sentence(
    total: Change, families: tuple[Change, ...], kernels: tuple[Change, ...], unit: str, classifier: Classifier
) -> str:
    """The total beside the largest change of a family: a small one can hide a large one."""
    said = f"{_launches(total)} launches {unit}"
    if not kernels or all(_size(one) == (0.0, 0.0) for one in kernels):
        return f"{said}: nothing changed"
    most = max(families, key=lambda one: abs(one.after_launches - one.before_launches))
    if most.after_launches == most.before_launches:
        said += ": no family launches more or less often"
    else:
        said += f"; the largest change of a family: {classifier.titles.get(most.name, most.name)} {_launches(most)}"
    new, gone = (sum(not one.before_launches for one in kernels), sum(not one.after_launches for one in kernels))
    return said + (f"; {units.counted(new, 'kernel')} new, {gone} gone" if new or gone else "")


def _launches(change: Change) -> str:
    """'110 -> 102 (-7.3 %)'."""
    before, after = change.before_launches, change.after_launches
    part = f" ({100 * (after / before - 1):+.1f} %)" if before and after != before else ""
    return f"{units.many(before)} -> {units.many(after)}{part}"
