"""What a campaign does next when nobody says: which idea, again or for the first time, or none and why.

Every idea is tried once on the stack of its turn, the one with the highest predicted ceiling first, so that each
accepted edit is under the next. Then those that lost are tried once more where other edits have joined the stack since,
except what was measured slower. Everything is read from the ledger, so that a campaign that was killed goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from campaign import effects, lease, machine, stack, units, verdicts
from campaign.config import Job
from campaign.config.compose import searchpath_override
from campaign.config.edits import stacked
from campaign.errors import BadInput
from campaign.interactions import headline_of
from campaign.ledger import Ledger
from campaign.reading import label, parameters
from campaign.records import ACCEPT, INCONCLUSIVE, REJECT, Floor, Hypothesis
from campaign.records.study import HEADLINE
from campaign.report.progress import Progress
from campaign.report.revalidation import revalidation_json, revalidation_text
from campaign.run.context import study_job
from campaign.run.declare import compose_arms, floor_for
from campaign.run.revalidate import Revalidated, revalidate

Row = Mapping[str, Any]
TRIED, CEILINGS, BUDGET, BIASED = "tried", "ceilings", "budget", "biased"  # why it stopped
FIRST_LOOKS = ("promising", "not_promising")  # reasons of looks that could not decide


@dataclass(frozen=True)
class Diagnosed:
    """The most that an edit can win by the last recorded diagnosis of the trace `file`, which was taken on `stack`: on
    another stack the same family is another share of the step, so that it orders ideas still and strikes none."""

    ceiling: float
    file: str
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Idea:
    """A hypothesis that may be tried. What its file says of a ceiling stands before what a diagnosis says."""

    job: Job
    diagnosed: Diagnosed | None = None

    @property
    def name(self) -> str:
        """The hypothesis with its parameters: 'register_cap registers=8'."""
        return label(self.job.hypothesis.name, self.job.command)

    @property
    def ceiling(self) -> float:
        """The most that it can win by its file or by a diagnosis; without either, what it predicts."""
        known = self.job.hypothesis.ceiling_ratio
        if known is None and self.diagnosed is not None:
            return self.diagnosed.ceiling
        return self.job.hypothesis.predicted_ratio if known is None else known

    @property
    def ceiling_text(self) -> str:
        """'1.040x predicted', '1.120x at most', '1.120x at most by the diagnosis of step.json.gz'."""
        known = self.job.hypothesis.ceiling_ratio
        if known is None and self.diagnosed is None:
            return f"{units.ratio(self.ceiling)} predicted"
        return f"{units.ratio(self.ceiling)} at most{self.source_text}"

    @property
    def source_text(self) -> str:
        """' by the diagnosis of step.json.gz' where the ceiling is from there; empty where its file says it."""
        if self.job.hypothesis.ceiling_ratio is not None or self.diagnosed is None:
            return ""
        return f" by the diagnosis of {self.diagnosed.file}"

    def is_low(self, d: float, stack: Sequence[str]) -> bool:
        """Whether a ceiling that holds on `stack` is not above 1 + d."""
        known = self.job.hypothesis.ceiling_ratio
        if known is None and self.diagnosed is not None and self.diagnosed.stack == tuple(stack):
            known = self.diagnosed.ceiling
        return known is not None and known <= 1 + d

    def is_of(self, row: Row) -> bool:
        """Whether a decision is about this very edit, on this workload as set here."""
        hypothesis = self.job.hypothesis
        if row["hypothesis"] != hypothesis.name or tuple(row["overrides"]) != hypothesis.edit.overrides:
            return False
        return set(parameters(row["hypothesis"], row["command"]).split()) == set(
            parameters(hypothesis.name, self.job.command).split()
        )


@dataclass(frozen=True)
class Survey:
    """How the ideas stand. `untried` and `again` are in the order in which they are tried; `struck` says of an idea
    why it is not; `low` are those struck by their ceiling, `slower` those not tried again since they were slower."""

    untried: tuple[Idea, ...] = ()
    again: tuple[tuple[Idea, str], ...] = ()
    struck: dict[str, str] = field(default_factory=dict)
    low: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()


def ordered(ideas: Sequence[Job], diagnosed: Mapping[str, Diagnosed] | None = None) -> list[Idea]:
    """The highest ceiling first; among equals what compiles in each fresh process last, then by name. `diagnosed` is by
    the name of the hypothesis."""
    found = [Idea(job, (diagnosed or {}).get(job.hypothesis.name)) for job in ideas]
    return sorted(found, key=lambda one: (-one.ceiling, "torch_compile" in one.job.hypothesis.needs, one.name))


def diagnosed_ceilings(ledger: Ledger, job: Job) -> dict[str, Diagnosed]:
    """What the last recorded diagnosis of the workload that `job` is about says of each hypothesis, by name. Nothing
    where there is none, where it is of another kind of device, and of hypotheses that it could not bound. What acts on
    a family that the trace does not have is not bounded either: an unfused norm runs under the names of other work."""
    row = ledger.last_diagnosis(job.workload)
    if row is None or row["device"].partition(":")[0] not in ("", job.device.partition(":")[0]):
        return {}
    file = f"{row['arm']} in {row['profile']}" if row["profile"] else row["trace"]["file"]
    return {
        one["hypothesis"]: Diagnosed(one["ceiling"], file, tuple(row["stack"]))
        for one in row["diagnosis"]["ideas"]
        if one["ceiling"] is not None and one["matched"]
    }


def survey(
    ideas: Sequence[Idea],
    rows: Sequence[Row],
    accepted: Sequence[Hypothesis],
    thresholds: Mapping[str, float],
    begun: int,
    left_alone: Collection[str] = (),
) -> Survey:
    """What the ledger's decisions say of the ideas, which are in order.

    `rows` are all decisions, `accepted` the hypotheses in the stack, `thresholds` d by an idea's name. `begun` is the
    line of this campaign's start: what was decided before it counts as tried, and its invalid results do not.
    `left_alone` are ideas that ended without a decision since.
    """
    names = [one.name for one in accepted]
    untried, again, struck, low, slower = [], [], {}, [], []
    for idea in ideas:
        mine = [row for row in rows if idea.is_of(row) and row["verdict"]["reason"] != verdicts.STALE]
        tried = [row for row in mine if row["line"] > begun or _decided(row)]
        if idea.name in left_alone:
            continue
        if tried:
            if change := _worth_another(tried, names, begun):
                if _slower(tried[-1]):
                    slower.append(f"{idea.name} (#{tried[-1]['sequence']})")
                elif not blocked(idea.job, accepted):
                    again.append((idea, change))
            elif tried[-1]["line"] <= begun and idea.job.hypothesis.name not in names:
                struck[idea.name] = _standing(tried[-1])
        elif idea.is_low(thresholds[idea.name], names):
            d = units.ratio(1 + thresholds[idea.name])
            said = f"{units.ratio(idea.ceiling)}{idea.source_text}"
            struck[idea.name] = f"its ceiling of {said} is not above 1 + d = {d}"
            low.append(idea.name)
        elif why := blocked(idea.job, accepted):
            struck[idea.name] = why
        else:
            untried.append(idea)
    return Survey(tuple(untried), tuple(again), struck, tuple(low), tuple(slower))


def blocked(job: Job, accepted: Sequence[Hypothesis]) -> str:
    """Why an edit cannot join the stack as it is; empty where it can."""
    hypothesis = job.hypothesis
    names = [one.name for one in accepted]
    if hypothesis.name in names:
        return f"{hypothesis.name} is in the stack"
    for one in accepted:
        if one.name in hypothesis.conflicts or hypothesis.name in one.conflicts:
            return f"it conflicts with {one.name}, which is in the stack"
    missing = [name for name in hypothesis.requires if name not in names]
    if missing:
        return f"it requires {', '.join(missing)}, not in the stack"
    try:
        stacked([*((one.name, one.edit) for one in accepted), (hypothesis.name, hypothesis.edit)], where="the stack")
    except BadInput as error:
        return error.message
    return ""


def stopped(found: Survey, thresholds: Mapping[str, float]) -> tuple[str, str]:
    """Why there is no idea left to try, as a word and a sentence."""
    if found.low:
        d = units.ratio(1 + min(thresholds[name] for name in found.low))
        return CEILINGS, f"no untried idea's ceiling exceeds the floor (1 + d = {d}): {', '.join(found.low)}"
    return TRIED, "every idea was tried"


def _decided(row: Row) -> bool:
    """Whether an earlier decision counts as a try: it was decisive, and about the edit."""
    verdict = row["verdict"]
    return verdict["verdict"] in (ACCEPT, REJECT, INCONCLUSIVE) and verdict["reason"] not in FIRST_LOOKS


def _worth_another(tried: Sequence[Row], names: Sequence[str], begun: int) -> str:
    """What changed around an edit that lost, in words; empty where it did not lose, a person has ruled, nothing
    changed, or it had its second try since `begun`."""
    last = tried[-1]
    since = sum(row["line"] > begun for row in tried)
    spent = since > 1 or 0 < since < len(tried)  # where the first try was before `begun`, one since is the second
    lost = last["verdict"]["verdict"] in (REJECT, INCONCLUSIVE)
    if spent or not lost or last["hypothesis"] in names or last["ruling"] or last["revoked"]:
        return ""
    return stack.neighbours_changed(last, names)


def _slower(row: Row) -> bool:
    effect = row["verdict"].get("effect")
    return bool(effect) and effect["high"] < 1


def _standing(row: Row) -> str:
    said = f"decided before, #{row['sequence']}: {row['verdict']['verdict']}"
    if row["ruling"]:
        return f"{said}, and a person ruled {row['ruling']}"
    return f"{said}, and taken back since" if row["revoked"] else said


def floor_here(null: Job, ledger: Ledger) -> Floor | None:
    """The floor of this machine and workload, where one that holds is in the ledger."""
    found = floor_for(null, ledger, compose_arms(null, ledger).control, machine.fingerprint(null.device))
    return found[1] if found else None


def thresholds(null: Job, ideas: Sequence[Idea], ledger: Ledger) -> dict[str, float]:
    """d of each idea, by its name."""
    floor = floor_here(null, ledger)
    return {idea.name: effects.threshold(idea.job.protocol, floor) for idea in ideas}


def accepted_now(ledger: Ledger) -> list[Hypothesis]:
    """The hypotheses in the stack, in order."""
    return [ledger.plan(row["plan_id"]).hypothesis for row in ledger.stack_rows()]


def study_of(null: Job) -> Job:
    """The job that revalidation measures by: what holds for every idea, without the null's own looks."""
    shared = [text for text in null.overrides if not text.startswith(("hypothesis=", "campaign.name="))]
    return study_job(
        null.root, null.campaign, [*searchpath_override(null.composer.searchpath), *shared], json=null.json
    )


def revalidated(job: Job, ledger: Ledger, *, apply: bool) -> Revalidated:
    """Revalidate the stack and show what it came to, as `campaign revalidate` does. Raises CampaignError."""
    progress = Progress(json=job.json)
    with lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=job.campaign), progress:
        done = revalidate(job, ledger, progress, apply=apply)
        progress.decision(revalidation_json(ledger, done) if job.json else revalidation_text(ledger, done))
    return done


def headline_since(ledger: Ledger, begun: int) -> str:
    """The sentence of a root-against-head finding since line `begun` about the stack as it is; empty where there is
    none, or a decision came after it."""
    decided = max((row["line"] for row in ledger.decision_rows()), default=0)
    names = [row["hypothesis"] for row in ledger.stack_rows()]
    for row in reversed(ledger.finding_rows()):
        if row["finding"]["kind"] == HEADLINE and row["line"] > max(begun, decided) and row["stack"] == names:
            return headline_of(row["finding"])
    return ""
