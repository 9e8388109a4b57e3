"""Two bounded ranges side by side, a step each: launches and traced time of families and kernels."""

from __future__ import annotations

from pathlib import Path

from campaign import units
from campaign.diagnosis.families import titles
from campaign.diagnosis.found import Change, Comparison, Steps
from campaign.report.diagnosis_sections import Top, notices, source_text
from campaign.report.kernel_names import shown
from campaign.report.sections import Facts, Items, Paper, Said, Section, grid, parts

NONE = "-"
HEADER = ("launches", "change", "traced time", "time change")


def comparison_paper(found: Comparison, top: Top) -> Paper:
    """The whole report. A difference of traced time is never called a speedup."""
    known = titles()
    per = "a step" if found.matched else "in the whole range"
    head = parts(
        Facts(
            (
                ("before", f"{found.before.file}: {source_text(found.before)}; {_steps(found.before_steps)}"),
                ("after", f"{found.after.file}: {source_text(found.after)}; {_steps(found.after_steps)}"),
            )
        ),
        notices(tuple(dict.fromkeys(found.notices))),
    )
    kernels = sorted(found.kernels, key=_moved, reverse=True)
    moved = [one for one in kernels if _differs(one)]
    sections = (
        Section(
            f"Total, {per}",
            parts(
                Said(found.sentence, strong=True),
                Said(found.why if not found.matched else ""),
                grid(("", *HEADER), [_line(found.total, "all")], left=("",)),
            ),
        ),
        Section(
            f"Families, {per}",
            parts(
                grid(("family", *HEADER), [_line(one, known.get(one.name, one.name)) for one in found.families],
                     left=("family",)),
            ),
        ),
        Section(
            f"Kernels, {per}",
            parts(
                Said("" if moved else "No kernel's launches or time differ."),
                grid(("kernel", *HEADER), [_line(one, one.name) for one in moved[: 2 * top.families]], names="kernel",
                     title="Those that changed most"),
                Said(_more(len(moved), 2 * top.families)),
                Items((_listed("Only after", found.appeared, top), _listed("Only before", found.vanished, top))),
            ),
        ),
    )  # fmt: skip
    last = (
        "This is profile evidence: traced durations differ by more than the edit (the profiler's own cost, clocks, "
        "neighbours), so no difference here is a speedup. Compare launches; time says where to look. "
        f"What gives a speedup: {found.speedup_command}."
    )
    title = f"{Path(found.before.file).name} against {Path(found.after.file).name}"
    return Paper(title, head, sections, last)


def _steps(steps: Steps) -> str:
    if steps.count is None:
        return f"steps not known{f': {steps.why}' if steps.why else ''}"
    said = units.counted(steps.count, "step") + (f" ({steps.source})" if steps.source else "")
    return said if steps.attributable else f"{said}, unattributable: {steps.why}"


def _line(one: Change, name: str) -> tuple[str, ...]:
    launches = one.after_launches - one.before_launches
    return (
        name,
        f"{units.many(one.before_launches)} -> {units.many(one.after_launches)}",
        f"{'+' if launches > 0 else ''}{units.many(launches)}",
        f"{units.nanoseconds(one.before_ns)} -> {units.nanoseconds(one.after_ns)}",
        units.signed_nanoseconds(one.after_ns - one.before_ns),
    )


def _moved(one: Change) -> float:
    return abs(one.after_ns - one.before_ns)


def _differs(one: Change) -> bool:
    return one.after_ns != one.before_ns or one.after_launches != one.before_launches


def _more(count: int, listed: int) -> str:
    return f"{count - listed} more changed; all are in --json, or with --top N." if count > listed else ""


def _listed(what: str, names: tuple[str, ...], top: Top) -> str:
    if not names:
        return ""
    more = f" and {len(names) - top.kernels} more" if len(names) > top.kernels else ""
    return f"{what}: {', '.join(shown(name, 60) for name in names[: top.kernels])}{more}"
