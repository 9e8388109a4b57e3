"""An answer of `campaign feasibility` as text, as Markdown and as JSON.

    {"schema": 1, "evidence": "arithmetic", "feasibility": a Feasibility of campaign.feasibility.found}

Limits are rounded in the safe direction: a lower bound of days and a size that would do down, days that would do up.
"""

from __future__ import annotations

from dataclasses import asdict

from campaign import units
from campaign.feasibility.found import NOW, OTHER, Ceilings, Feasibility, Goal, Pace, Roof
from campaign.feasibility.quantities import shown, shown_days
from campaign.report.json_text import as_text
from campaign.report.section_page import papers_page
from campaign.report.section_text import paper_text
from campaign.report.sections import Facts, Items, Paper, Said, Section, grid, parts

SCHEMA = 1
NONE = "-"
FAMILIES = 8  # listed; JSON has all
LAST = (
    "Arithmetic over rates and bounds: no decision, no measurement of an edit. What an idea wins is measured on whole "
    "steps: campaign hypothesis=NAME."
)


def feasibility_json(found: Feasibility) -> str:
    """The answer as one JSON object."""
    return as_text({"schema": SCHEMA, "evidence": "arithmetic", "feasibility": asdict(found)})


def feasibility_text(found: Feasibility, *, terminal: bool, width: int | None = None) -> str:
    """The answer without a last newline. `width` in characters: that of the terminal if None."""
    return paper_text(feasibility_paper(found), terminal=terminal, width=width)


def feasibility_page(found: Feasibility, form: str) -> str:
    """The answer as a page in `form`, "md"."""
    return papers_page([feasibility_paper(found)], form)


def feasibility_paper(found: Feasibility) -> Paper:
    """The whole answer: verdict, then what it stands on."""
    goal = found.goal
    title = f"Feasibility of {shown(goal.token_budget)} tokens in {_time(goal)}"
    said = found.sentence if found.sentence.startswith(found.verdict) else f"{found.verdict}: {found.sentence}"
    head = parts(
        Said(said, strong=True),
        Said(f"{found.why}." if found.why else ""),
        Items(tuple(f"note: {one}" for one in found.notes)),
    )
    sections = [
        _rates(found),
        _utilisation(found) if found.judged.utilisations else None,
        _ceilings(found.ceilings) if found.ceilings else None,
        _would_do(found) if found.verdict != NOW else None,
        _costs(found),
    ]
    return Paper(title, head, tuple(one for one in sections if one), LAST)


def _rates(found: Feasibility) -> Section:
    goal = found.goal
    budget = f"{shown(goal.token_budget)} tokens"
    if goal.tokens_per_parameter is not None and goal.parameters is not None:
        budget += f": {shown(goal.parameters)} parameters x {goal.tokens_per_parameter:g} tokens"
    devices = str(goal.devices)
    if goal.devices > 1:
        devices += f", each at {units.share(goal.scaling_efficiency)} of one alone (taken as constant)"
    lines = [_rate(one, goal) for one in found.paces]
    lines.append(("required", NONE, units.rate(found.required_tokens_per_second), NONE, NONE, NONE))
    return Section(
        "Budget and rate",
        parts(
            Facts((("token budget", budget), ("time", _time(goal)), ("devices", devices))),
            grid(
                ("rate", "one device", "all devices", "gap", "lower bound", "from"), lines,
                left=("rate",), folding=("from",), least=("one device",),
            ),
        ),
    )  # fmt: skip


def _time(goal: Goal) -> str:
    return "1 day" if goal.days == 1 else f"{goal.days:,.5g} days"


def _rate(one: Pace, goal: Goal) -> tuple[str, ...]:
    return (
        one.rate.name,
        units.rate(one.rate.tokens_per_second) if goal.devices > 1 else NONE,
        units.rate(one.all_devices_tokens_per_second),
        f"{one.gap:.2f}x",
        shown_days(one.lower_bound_days, down=True),
        one.rate.source,
    )


def _utilisation(found: Feasibility) -> Section:
    assert found.flops_per_token is not None
    goal = found.goal
    lines = []
    for place, one in enumerate(found.judged.utilisations):
        others = [units.share(pace.utilisations[place].now) for pace in found.paces]
        lines.append(
            (one.roof.name, one.roof.precision, _flops(one.roof.flops_per_second),
             units.bandwidth(one.roof.dram_bytes_per_second) if one.roof.dram_bytes_per_second else NONE,
             *others, units.share(one.required))
        )  # fmt: skip
    formula = "6 x parameters" + (" + 12 x layers x width x context" if goal.attention else ", attention left out")
    now = tuple(f"at {one.rate.name}" if len(found.paces) > 1 else "now" for one in found.paces)
    roofs = [one.roof for one in found.judged.utilisations]
    return Section(
        "Model FLOP utilisation",
        parts(
            Said(
                f"A token of training costs {shown(found.flops_per_token)} operations ({formula}; Kaplan et al. 2020, "
                "Chowdhery et al. 2022, appendix B); recomputed work is not counted."
            ),
            grid(
                ("device", "precision", "at most", "DRAM", *now, "required"), lines,
                left=("device", "precision"), folding=("device",), least=("DRAM",),
            ),
            Items(tuple(_source(one) for one in roofs)),
        ),
    )  # fmt: skip


def _flops(per_second: float) -> str:
    """'989.5 TFLOP/s', '84.2 GFLOP/s'."""
    scale, unit = (1e12, "T") if per_second >= 1e12 else (1e9, "G")
    return f"{per_second / scale:,.4g} {unit}FLOP/s"


def _source(roof: Roof) -> str:
    if roof.kind == "measured":
        return f"{roof.name}: measured by {roof.source}; another product may do more, so it limits nothing"
    return f"{roof.name}: {roof.source}"


def _ceilings(found: Ceilings) -> Section:
    lines = [
        (one.title, units.share(one.share_of_range), units.ratio(one.removed)) for one in found.families[:FAMILIES]
    ]
    if found.all_halved is not None:
        lines.append(("every family halved", NONE, units.ratio(found.all_halved)))
    if found.best_kernels is not None:
        lines.append(("every family halved, no idle time", NONE, units.ratio(found.best_kernels)))
    ideas = [
        (one.hypothesis, one.acts_on, units.ratio(one.predicted),
         units.ratio(one.ceiling) if one.ceiling is not None else "unknown", units.ratio(one.counted))
        for one in found.ideas
    ]  # fmt: skip
    if ideas:
        bound = units.ratio(found.allowed) if found.allowed is not None else "unknown"
        ideas.append(("all of them", NONE, NONE, bound, units.ratio(found.claimed)))
    about = f"{found.diagnosis}{f' of {found.trace}' if found.trace else ''}"
    of = f", workload {found.workload}" if found.workload else ""
    return Section(
        "What ideas could give at most",
        parts(
            Said(
                f"From {about}{of}, taken to be of this very training step. Ceilings are Amdahl's: families that cost "
                "nothing at all. They are upper bounds and no forecast; an idea counts for what it predicts, but for "
                "no more than its ceiling."
            ),
            grid(("removed", "share of the range", "at most"), lines, left=("removed",)),
            grid(
                ("open idea", "acts on", "predicted", "ceiling", "counts for"), ideas,
                left=("open idea", "acts on"), least=("acts on", "predicted"),
            ),
            Items(tuple(f"left out: {one}" for one in found.left_out)),
        ),
    )  # fmt: skip


def _would_do(found: Feasibility) -> Section:
    goal, would = found.goal, found.would_do
    model = ""
    if would.parameters is not None:
        kept = "the same tokens per parameter" if goal.tokens_per_parameter is not None else "the same budget"
        model = f"{shown(would.parameters, 4, down=True)} parameters, at {kept} and the same model FLOPs a second"
    budget = f"{shown(would.token_budget, 4, down=True)} tokens"
    if goal.parameters is not None:
        budget += f", {would.token_budget / goal.parameters:.3g} a parameter"
    efficiency = units.share(goal.scaling_efficiency)
    return Section(
        "What would do instead",
        parts(
            Said("Each by itself, at the rate that was judged."),
            Facts(
                (
                    ("devices", f"{would.devices:,} like this one, each at {efficiency} of one alone"),
                    ("a smaller model", model),
                    ("a smaller budget", budget),
                    ("more time", shown_days(would.days, down=False)),
                )
            ),
        ),
    )


def _costs(found: Feasibility) -> Section:
    added = tuple(
        (
            "all periodic costs" if one.item == OTHER else one.item,
            f"{units.share(one.share_of_wall_time)} of the wall time",
        )
        for one in found.goal.overheads
    )
    left_out = ""
    if found.excluded:
        left_out = (
            f"Excluded: {', '.join(found.excluded)}, as far as the timed step does not hold them. Each makes it "
            f"longer: --{found.excluded[0]}-share 0.02 adds one, --overhead 3% all of them."
        )
    return Section(
        "Periodic costs",
        parts(Facts(added), Said(left_out), Said("Restarts, failures and the wait for devices are never counted.")),
    )
