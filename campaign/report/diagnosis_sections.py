"""A diagnosis in the order in which it is read: dispatch, families, ceilings, copies, kernels, what to try."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from campaign import units
from campaign.diagnosis.found import Ceilings, Copies, Diagnosis, Families, FamilyShare, IdeaCeiling
from campaign.report import diagnosis_dispatch, diagnosis_kernels
from campaign.report.kernel_names import shown
from campaign.report.sections import Facts, Items, Paper, Said, Section, grid, parts
from campaign.traces.timeline import Notice, Source

NONE = "-"
LAST = (
    "This is profile evidence: nothing here is a speedup, and nothing here can reach a verdict. A ceiling is the most "
    "that could be won, never what is. What an edit wins is measured on whole steps without a profiler: "
    "campaign hypothesis=NAME."
)
WORTH_LISTING = 0.01  # of the busy time: families whose kernels are listed


@dataclass(frozen=True)
class Top:
    """How much is listed: families (also ceilings and ideas), and kernels of each (also gaps, movers, counters)."""

    families: int = 10
    kernels: int = 5


def diagnosis_paper(found: Diagnosis, top: Top) -> Paper:
    """The whole report on one profile."""
    steps = found.dispatch.steps.count if found.dispatch and found.dispatch.steps.attributable else None
    sections = [
        diagnosis_dispatch.section(found.dispatch, top.kernels) if found.dispatch else None,
        _families(found.families, steps, top) if found.families else None,
        _ceilings(found.ceilings, found.families, top) if found.ceilings else None,
        _copies(found.copies, top) if found.copies else None,
        diagnosis_kernels.section(found, top.kernels) if found.kernels else None,
        _ideas(found.ideas) if found.dispatch or found.ideas else None,
    ]
    reports = [("counters", _from(one)) for one in found.reports]
    trace = [("profile", _from(found.source))] if found.dispatch or not reports else []
    head = parts(Facts((*trace, *reports)), notices(found.notices))
    return Paper(f"Diagnosis of {Path(found.source.file).name}", head, tuple(one for one in sections if one), LAST)


def _from(source: Source) -> str:
    return f"{source.file}: {source_text(source)}"


def source_text(source: Source) -> str:
    """'kineto, written by PyTorch 2.3, 1.1 MiB, times to 1 us'."""
    said = [
        source.format,
        f"written by {source.tool}" if source.tool else "",
        units.size(source.size_bytes) if source.size_bytes else "",
        f"times to {_clock(source.resolution_ns)}" if not source.format.startswith("ncu") else "",
    ]
    return ", ".join(part for part in said if part)


def _clock(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000} us" if nanoseconds >= 1000 and nanoseconds % 1000 == 0 else f"{nanoseconds} ns"


def notices(found: tuple[Notice, ...]) -> Items:
    """What the reader must know first: what lowers confidence, then the rest."""
    serious = [f"LOWER CONFIDENCE: {one.text}" for one in found if one.lowers_confidence]
    if serious:
        serious.append("So idle time may be too large, and launches and shares too small.")
    return Items((*serious, *(f"note: {one.text}" for one in found if not one.lowers_confidence)))


def _families(found: Families, steps: int | None, top: Top) -> Section:
    first = found.shares[: top.families]
    lines = [_family(one, steps) for one in first]
    if rest := found.shares[top.families :]:
        charged = sum(one.charged_ns for one in rest)
        launches = sum(one.launches for one in rest)
        per_step = units.many(launches / steps) if steps else NONE
        share = units.share(sum(one.share for one in rest))
        lines.append(
            (f"{len(rest)} more", share, units.nanoseconds(charged), NONE, units.many(launches), per_step, NONE)
        )
    launches = sum(one.launches for one in found.shares)
    lines.append(
        ("all", "100 %" if found.busy_ns else NONE, units.nanoseconds(found.busy_ns), NONE, units.many(launches),
         units.many(launches / steps) if steps else NONE, NONE)
    )  # fmt: skip
    header = ("family", "share", "time", "alone", "launches", "a step", "time a launch")
    listed = [one for one in first if one.share >= WORTH_LISTING]
    kernels = [
        (kernel.name, one.family if place == 0 else "", _part(kernel.summed_ns, found.busy_ns),
         units.nanoseconds(kernel.summed_ns), units.many(kernel.launches),
         units.nanoseconds(kernel.summed_ns / kernel.launches) if kernel.launches else NONE)
        for one in listed
        for place, kernel in enumerate(one.kernels[: top.kernels])
    ]  # fmt: skip
    unknown = [
        (one.name, units.many(one.launches), units.nanoseconds(one.summed_ns), _part(one.summed_ns, found.busy_ns))
        for one in found.unclassified[: top.kernels]
    ]
    return Section(
        "Families",
        parts(
            Said(
                "Share and time charge each busy instant once, shared equally where families run beside each other. "
                "Alone is the time in which only this family ran: the most that removing it can give."
            ),
            grid(header, lines, left=("family",), least=("a step", "alone", "launches")),
            _together(found),
            grid(
                ("kernel", "family", "share", "time", "launches", "time a launch"), kernels, names="kernel",
                left=("family",), least=("share", "launches", "time a launch"),
                title="The longest kernels of each family (share and time: their durations added up)",
                folded="The longest kernels of each family (share and time: their durations added up)",
            ),
            Said(f"Unclassified: {units.share(found.unclassified_share)} of the busy time."
                 + (" A rule in conf/diagnosis.yaml names them." if unknown else "")),
            grid(("kernel", "launches", "time", "share"), unknown, names="kernel", least=("launches",)),
        ),
    )  # fmt: skip


def _family(one: FamilyShare, steps: int | None) -> tuple[str, ...]:
    return (
        one.title,
        units.share(one.share),
        units.nanoseconds(one.charged_ns),
        units.nanoseconds(one.alone_ns),
        units.many(one.launches),
        units.many(one.launches / steps) if steps else NONE,
        units.nanoseconds(one.summed_ns / one.launches) if one.launches else NONE,
    )


def _together(found: Families) -> Facts:
    """The longest times in which several families ran beside each other."""
    titles = {one.family: one.title for one in found.shares}
    several = sorted(((ns, names) for names, ns in found.masks_ns if len(names) > 1 and ns), reverse=True)
    said = "; ".join(
        f"{' beside '.join(titles.get(name, name) for name in names)} {units.nanoseconds(ns)}"
        for ns, names in several[:3]
    )
    more = f"; {len(several) - 3} more combinations" if len(several) > 3 else ""
    return Facts((("overlap", said + more),))


def _part(nanoseconds: float, whole: float) -> str:
    return units.share(nanoseconds / whole) if whole else NONE


def _ceilings(found: Ceilings, families: Families | None, top: Top) -> Section:
    titles = {one.family: one.title for one in families.shares} if families else {}
    lines = [
        (titles.get(one.family, one.family), units.share(one.share_of_range), _ceiling(one.removed),
         units.ratio(one.halved))
        for one in found.each[: top.families]
    ]  # fmt: skip
    lines += [
        (f"together: {one.title}", units.share(one.share_of_range), _ceiling(one.removed), units.ratio(one.halved))
        for one in found.groups
    ]
    lines.append(("all idle time", NONE, _ceiling(found.idle_removed), NONE))
    lines.append(("every family", NONE, NONE, units.ratio(found.all_halved)))
    sets = []
    if found.target is not None:
        for how, sets_found in (("removing", found.removing), ("halving", found.halving)):
            said = [
                f"{' + '.join(titles.get(name, name) for name in one.families)} ({_ceiling(one.ratio)})"
                for one in sets_found[: top.kernels]
            ]
            more = f"; {len(sets_found) - top.kernels} more sets of this size" if len(sets_found) > top.kernels else ""
            sets.append((f"{units.ratio(found.target)} by {how}", ("; or ".join(said) or "no set of families") + more))
    return Section(
        "Ceilings",
        parts(
            Said(found.sentence, strong=True),
            Said("Amdahl's law on the captured range: what it would be at most if this cost nothing, or half."),
            grid(("of", "share of the range", "removed", "halved"), lines, left=("of",)),
            Facts(tuple(sets)),
        ),
    )


def _ceiling(value: float | None) -> str:
    return "no bound" if value is None else units.ratio(value)


def _copies(found: Copies, top: Top) -> Section:
    directions = [
        (one.name, units.many(one.count), units.size(one.bytes) if one.bytes else NONE,
         units.nanoseconds(one.summed_ns),
         units.bandwidth(one.bytes_per_second) if one.bytes_per_second is not None else NONE)
        for one in found.directions
    ]  # fmt: skip
    movers = [
        (one.name, units.share(one.share), units.nanoseconds(one.summed_ns), units.many(one.launches),
         *(units.share(value / 100) if value is not None else NONE for value in (one.dram_percent, one.sm_percent)),
         one.word)
        for one in found.movers[: top.kernels]
    ]  # fmt: skip
    with_counters = [one for one in found.movers if one.dram_percent is not None or one.sm_percent is not None]
    more = len(found.movers) - len(movers)
    return Section(
        "Copies",
        parts(
            Said(found.sentence, strong=True),
            Facts(
                (
                    ("copies and sets", f"{units.share(found.copy_share)} of the busy time"),
                    ("kernels that only move or convert", f"{units.share(found.moving_share)} of the busy time"),
                )
            ),
            grid(("copy", "count", "moved", "time", "rate"), directions, left=("copy",), least=("rate",)),
            grid(
                ("kernel", "share", "time", "launches", "DRAM", "SM", "called"), movers, names="kernel",
                left=("called",), least=("launches", "time"), title="Kernels that only move or convert data",
            ),
            Said(f"{more} more are in --json, or with --top N." if more else ""),
            Items(tuple(f"{shown(one.name, 60)}: {one.word}: {one.why}" for one in with_counters[: top.kernels])),
        ),
    )  # fmt: skip


def _ideas(found: tuple[IdeaCeiling, ...]) -> Section:
    if not found:
        said = "No hypothesis was ranked: in a campaign project this lists its ideas by what each could win at most."
        return Section("What to try", (Said(said),))
    lines = [
        (one.hypothesis, one.acts_on, units.share(one.share) if one.share is not None else NONE,
         units.ratio(one.ceiling) if one.ceiling is not None else "unknown", units.ratio(one.predicted),
         f"struck out: {one.why}" if one.struck else one.why)
        for one in found
    ]  # fmt: skip
    struck = frozenset(place for place, one in enumerate(found) if one.struck)
    return Section(
        "What to try",
        parts(
            grid(
                ("hypothesis", "acts on", "share", "ceiling", "predicted", "why"), lines,
                left=("hypothesis", "acts on"), folding=("why",), keep=("why",),
                least=("acts on", "share", "predicted"), struck=struck,
            ),
        ),
    )  # fmt: skip
