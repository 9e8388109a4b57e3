"""The first section of a diagnosis: whether the device waits for the host, and in what."""

from __future__ import annotations

from campaign import units
from campaign.diagnosis.found import DeviceUse, Dispatch
from campaign.report.kernel_names import shown
from campaign.report.sections import Facts, Said, Section, grid, parts

NONE = "-"
CAUSES = {
    "sync": "the host was waiting in a synchronising call when it began",
    "host": "the next work was launched only after it began",
    "queued": "the next work had been launched before it began",
    "unknown": "the trace does not say",
    "small": "too short to look up one by one",
}


def section(found: Dispatch, top: int) -> Section:
    """The captured range of each device, its idle time and gaps with what the host did in them."""
    steps = found.steps.count if found.steps.attributable else None
    idle = sum(one.idle_ns for one in found.devices)
    header = ("device", "range", "busy", "idle", "idle %", "idle a step", "launches", "a step", "copies", "sets",
              "streams", "overlap")  # fmt: skip
    origins = {one.device: one.start_ns for one in found.devices}
    several = len(found.devices) > 1
    gaps = [
        (str(one.device) if several else NONE, units.nanoseconds(one.duration_ns),
         units.nanoseconds(one.start_ns - origins.get(one.device, 0)), one.cause, one.host or NONE,
         f"{shown(one.before, 30) or NONE} -> {shown(one.after, 30) or NONE}")
        for one in sorted(found.gaps, key=lambda gap: -gap.duration_ns)[:top]
    ]  # fmt: skip
    passes = [
        (one.name, units.many(one.count), *(units.nanoseconds(ns) if ns is not None else NONE
                                            for ns in (one.host_ns, one.stream_ns)))
        for one in found.passes[:top]
    ]  # fmt: skip
    metrics = [
        (one.name, str(one.device) if several else NONE, units.many(one.samples), f"{one.mean:,.1f}",
         f"{one.largest:,.1f}")
        for one in found.metrics
    ]  # fmt: skip
    causes = [
        (cause, units.nanoseconds(ns), units.share(ns / idle) if idle else NONE, CAUSES.get(cause, NONE))
        for cause, ns in sorted(found.idle_by_cause_ns.items(), key=lambda item: -item[1])
        if ns
    ]
    ceiling = found.aggregation_ceiling
    return Section(
        "Dispatch",
        parts(
            Said(_verdict(found), strong=True),
            grid(header, [_device(one, steps) for one in found.devices], left=("device",),
                 least=("sets", "overlap", "copies", "streams", "busy", "a step")),
            Facts(
                (
                    ("steps", _steps(found)),
                    ("host launches", _launches(found, steps)),
                    ("idle", _replays(found, idle)),
                    ("launching less could give", f"at most {units.ratio(ceiling)} of the captured range"
                     if ceiling is not None else "unknown" if found.devices else ""),
                )
            ),
            grid(("idle by cause", "time", "of all idle", "meaning"), causes, left=("idle by cause", "meaning"),
                 folding=("meaning",)),
            grid(("gap", "device", "begins at", "cause", "the host did", "between"),
                 [(line[1], line[0], *line[2:]) for line in gaps],
                 left=("cause",), folding=("the host did", "between"), least=("begins at", "between"),
                 title="The largest gaps"),
            grid(("pass", "count", "on the host", "on the stream"), passes, folding=("pass",),
                 title="Named ranges on two clocks, which overlap: compare them, never add them"),
            grid(("metric", "device", "samples", "mean", "largest"), metrics, folding=("metric",),
                 title="GPU metric samples"),
        ),
    )  # fmt: skip


def _verdict(found: Dispatch) -> str:
    """The sentence, which as a rule begins with the verdict's word."""
    return found.sentence if found.sentence.startswith(found.verdict) else f"{found.verdict}: {found.sentence}"


def _replays(found: Dispatch, idle: int) -> str:
    """Idle time inside graph replays, which launching cannot explain, and the rest."""
    inside = found.replay_idle_ns
    if inside is None:
        return ""
    return f"{units.nanoseconds(inside)} inside graph replays, {units.nanoseconds(idle - inside)} outside of them"


def _device(one: DeviceUse, steps: int | None) -> tuple[str, ...]:
    launches = one.kernels or one.events - one.copies - one.sets
    label = (
        str(one.device) if one.label in ("", str(one.device), f"device {one.device}") else f"{one.device} {one.label}"
    )
    return (
        label,
        units.nanoseconds(one.span_ns),
        units.nanoseconds(one.busy_ns),
        units.nanoseconds(one.idle_ns),
        units.share(one.idle_ns / one.span_ns) if one.span_ns else NONE,
        units.nanoseconds(one.idle_ns / steps) if steps else NONE,
        units.many(launches),
        units.many(launches / steps) if steps else NONE,
        units.many(one.copies) if one.copies else NONE,
        units.many(one.sets) if one.sets else NONE,
        units.many(one.streams),
        units.nanoseconds(one.overlap_ns) if one.overlap_ns else NONE,
    )


def _steps(found: Dispatch) -> str:
    steps = found.steps
    if steps.count is None:
        return f"not known: {steps.why}" if steps.why else "not known; --steps N says how many"
    said = f"{steps.count:,} ({steps.source})" if steps.source else f"{steps.count:,}"
    if not steps.attributable:
        return f"{said}, unattributable" + ("" if steps.why in found.sentence else f": {steps.why}")
    return steps.why or said


def _launches(found: Dispatch, steps: int | None) -> str:
    total = found.host_launches + found.graph_launches
    if not total:
        return ""
    kernels, graphs = found.host_launches, found.graph_launches
    said = f"{kernels:,} {'kernel' if kernels == 1 else 'kernels'}, {graphs:,} {'graph' if graphs == 1 else 'graphs'}"
    return said + (f"; {units.many(total / steps)} a step" if steps else "")
