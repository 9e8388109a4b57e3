"""A whole diagnosis, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Sequence

from campaign.diagnosis.busy import Busy, sweep
from campaign.diagnosis.ceilings import find_ceilings, ratio
from campaign.diagnosis.dispatch import dispatch
from campaign.diagnosis.families import OTHER, Classifier
from campaign.diagnosis.found import Diagnosis, Families, FamilyShare, KernelShare
from campaign.diagnosis.ideas import rank
from campaign.diagnosis.kernels import Share, find_kernels
from campaign.diagnosis.names import normal
from campaign.diagnosis.question import Question
from campaign.diagnosis.ranges import window_of
from campaign.diagnosis.steps import find_steps
from campaign.errors import BadInput
from campaign.traces import KernelReport, Timeline
from campaign.traces.timeline import Notice, Work

UNCLASSIFIED_MATTERS = 0.02


def diagnose(timeline: Timeline | None, reports: Sequence[KernelReport], question: Question) -> Diagnosis:
    """What a trace, kernel reports, or both say. Raises BadInput for a question that the trace cannot answer."""
    report_notices = tuple(notice for report in reports for notice in report.notices)
    sources = tuple(report.source for report in reports)
    if timeline is None:
        if not reports:
            raise BadInput("nothing to diagnose", remedy="campaign diagnose FILE")
        kernels, _ = find_kernels(reports, {}, Classifier(question.rules).family)
        return Diagnosis(sources[0], report_notices, None, None, None, None, kernels, (), sources)
    classifier = Classifier(question.rules)
    window, notices = window_of(timeline, question.window)
    busy = sweep(timeline, classifier.family, window)
    steps = find_steps(timeline, busy, question.steps, question.window)
    found = dispatch(timeline, busy, steps)
    families = share_out(busy, timeline.names, classifier.titles)
    if families and families.unclassified_share > UNCLASSIFIED_MATTERS:
        text = f"{100 * families.unclassified_share:.1f} % of the busy time is in kernels that no family rule knows"
        notices.append(Notice("unclassified", text))
    kernels, unjoined = find_kernels(reports, kernel_shares(busy, timeline.names), classifier.family)
    from campaign.diagnosis.copies import find_copies

    return Diagnosis(
        source=timeline.source,
        notices=(*timeline.notices, *notices, *report_notices),
        dispatch=found,
        families=families,
        ceilings=find_ceilings(busy, classifier.titles, question.target),
        copies=find_copies(busy, timeline, kernels, steps.count) if busy.devices else None,
        kernels=kernels,
        ideas=rank(question.ideas, busy, found, timeline.names, question.floor) if busy.range_ns else (),
        reports=sources,
        unjoined=unjoined,
    )


def share_out(busy: Busy, names: Sequence[str], titles: dict[str, str]) -> Families | None:
    """Every family's part of the busy time, with its kernels, the longest first. None without device work."""
    if not busy.devices:
        return None
    charged = dict.fromkeys(busy.families, 0.0)
    masks = []
    for mask, nanoseconds in sorted(busy.masks_ns.items(), key=lambda one: -one[1]):
        together = tuple(family for place, family in enumerate(busy.families) if mask >> place & 1)
        masks.append((together, nanoseconds))
        for family in together:
            charged[family] += nanoseconds / len(together)
    kernels: dict[str, list[KernelShare]] = {family: [] for family in busy.families}
    for place in busy.names():
        family = busy.families[busy.family[place]]
        kernels[family].append(
            KernelShare(
                names[place],
                family,
                int(busy.launches[place]),
                int(busy.summed_ns[place]),
                int(busy.alone_ns[place]),
            )
        )
    whole = busy.busy_ns
    shares = [
        FamilyShare(
            family,
            titles.get(family, family),
            sum(one.launches for one in kernels[family]),
            sum(one.summed_ns for one in kernels[family]),
            charged[family],
            busy.removed_ns({family}),
            charged[family] / whole if whole else 0.0,
            tuple(kernels[family]),
        )
        for family in busy.families
    ]
    shares.sort(key=lambda one: (-one.charged_ns, one.family))
    other = next((one for one in shares if one.family == OTHER), None)
    return Families(
        shares=tuple(shares),
        busy_ns=whole,
        range_ns=busy.range_ns,
        unclassified_share=other.share if other else 0.0,
        unclassified=other.kernels if other else (),
        masks_ns=tuple(masks),
    )


def kernel_shares(busy: Busy, names: Sequence[str]) -> dict[str, Share]:
    """Launches, share of the busy time and ceiling of each kernel, by its normal name: what a report is joined by."""
    found: dict[str, list[int]] = {}
    for place in busy.names():
        if busy.kind[place] == Work.KERNEL:
            found.setdefault(normal(names[place]), []).append(int(place))
    whole = busy.busy_ns
    return {
        name: Share(
            launches=int(busy.launches[ids].sum()),
            share=float(busy.summed_ns[ids].sum() / whole) if whole else 0.0,
            ceiling=ratio(busy.range_ns, int(busy.alone_ns[ids].sum())),
        )
        for name, ids in found.items()
    }
