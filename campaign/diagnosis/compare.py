"""Two bounded ranges side by side, per step: what is launched, and what changed (case G's launch audit).

Durations under a profiler are no speedup, and nothing here calls them one. What can be compared is what ran: launches
of each family and kernel in a step, and where traced time went. A small total can hide a large targeted change.
"""

from __future__ import annotations

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
    kernels = _changes(one, two, per_step=matched)
    families = _by_family(kernels)
    total = _total(kernels)
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


def _changes(one: _Side, two: _Side, *, per_step: bool) -> tuple[Change, ...]:
    """What each kernel became, a step where both ranges hold known steps, else in the whole ranges."""
    before, after = one.kernels(), two.kernels()
    earlier, later_steps = (one.divisor, two.divisor) if per_step else (1, 1)
    nothing = ("", 0, 0)
    found = []
    for name in dict.fromkeys((*before, *after)):
        family, launches, length = before.get(name, nothing)
        other, later, later_length = after.get(name, nothing)
        found.append(
            Change(
                name,
                family or other,
                launches / earlier,
                later / later_steps,
                length / earlier,
                later_length / later_steps,
            )
        )
    return tuple(sorted(found, key=_size, reverse=True))


def _size(change: Change) -> tuple[float, float]:
    return (abs(change.after_ns - change.before_ns), abs(change.after_launches - change.before_launches))


def _by_family(kernels: tuple[Change, ...]) -> tuple[Change, ...]:
    found: dict[str, list[Change]] = {}
    for change in kernels:
        found.setdefault(change.family, []).append(change)
    families = [_total(tuple(changes), family) for family, changes in found.items()]
    return tuple(sorted(families, key=lambda change: -max(change.before_ns, change.after_ns)))


def _total(changes: tuple[Change, ...], name: str = "total") -> Change:
    return Change(
        name,
        name if name != "total" else "",
        sum(one.before_launches for one in changes),
        sum(one.after_launches for one in changes),
        sum(one.before_ns for one in changes),
        sum(one.after_ns for one in changes),
    )


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
    launches = f"{units.many(total.before_launches)} -> {units.many(total.after_launches)} launches {unit}"
    if not kernels or all(_size(one) == (0.0, 0.0) for one in kernels):
        return f"{launches}: nothing changed"
    most = max(families, key=lambda one: abs(one.after_launches - one.before_launches))
    title = classifier.titles.get(most.name, most.name)
    if most.after_launches == most.before_launches:
        return f"{launches}: no family launches more or less often"
    targeted = f"{title} {units.many(most.before_launches)} -> {units.many(most.after_launches)}"
    return f"{launches}; the largest change of a family: {targeted}"
