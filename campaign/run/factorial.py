"""How named edits interact: which arms a factorial takes, what it costs, and the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from campaign import interactions
from campaign.config import Job
from campaign.config.edits import stacked
from campaign.errors import BadInput
from campaign.ledger import Ledger
from campaign.records import Arm, Hypothesis, Protocol, Study
from campaign.records.study import FACTORIAL
from campaign.run.context import hypothesis_job
from campaign.run.declare import accepted_here, check_place
from campaign.run.studies import HEAD, ROOT, asked, declared, edits_of, patient
from campaign.run.trees import Composition

RECENT = 20  # rounds of the ledger that an estimate of time goes by


@dataclass(frozen=True)
class Design:
    """The arms of a factorial of `subjects`, of which the one with role root holds none. `groups` are the roles of one
    round each; `stack` the accepted edits; `protocol` is the job's with the longest deadlines of the edits' own.
    `notices` are sentences to show beforehand."""

    subjects: tuple[str, ...]
    arms: tuple[Arm, ...]
    members: dict[str, tuple[str, ...]]
    generators: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    stack: tuple[str, ...]
    protocol: Protocol
    notices: tuple[str, ...] = ()


def design(
    job: Job, ledger: Ledger, names: Sequence[str], on: str = ROOT, own: Mapping[str, Sequence[str]] | None = None
) -> Design:
    """Every combination of the named edits, or a fraction of them, on root alone or `on` the rest of the stack (head).

    An edit in the stack is taken as it was accepted, another one from its file, with its `own` words (parameters).
    No names: the whole stack. Raises BadInput for edits that cannot all be left out and put in and for a ledger of
    another place, UnknownName.
    """
    check_place(job, ledger)
    accepted = {one.name: one for one in accepted_here(job, ledger)}
    if not names and len(accepted) < 2:
        raise BadInput(
            f"the stack of campaign {job.campaign!r} holds {len(accepted)} edits, and an interaction takes two",
            remedy="campaign interactions NAME NAME",
        )
    outside = [
        hypothesis_job(job, name, words)
        for name in names
        if (words := (own or {}).get(name, ())) or name not in accepted
    ]
    known = accepted | {one.hypothesis.name: one.hypothesis for one in outside}
    subjects = [known[name] for name in names or accepted]
    chosen = [one.name for one in subjects]
    rest = [one for one in accepted.values() if one.name not in chosen] if on == HEAD else []
    members, generators = interactions.design(chosen)
    _check(subjects, rest)
    standing = "+".join((ROOT, *(one.name for one in rest)))
    composed = Composition(job, ledger, edits_of([*rest, *subjects]))
    arms = []
    for role, held in members.items():
        inside = [one for one in subjects if one.name in held]
        arms.append(composed.arm(role, "+".join((standing, *held)), edits_of([*rest, *inside])))
    unprobed = [name for name in chosen if known[name] != accepted.get(name)]
    return Design(
        subjects=tuple(chosen),
        arms=tuple(arms),
        members=members,
        generators=generators,
        groups=interactions.groups(list(members), ROOT),
        stack=tuple(accepted),
        protocol=patient(job.protocol, [one.protocol for one in outside]),
        notices=(f"not in the stack, and not probed here: {', '.join(unprobed)}",) if unprobed else (),
    )


def factorial(job: Job, ledger: Ledger, made: Design, rounds: int | None = None, on: str = ROOT) -> Study:
    """The study of a design, not registered yet. `rounds` None: as many as confirm a gain."""
    return declared(
        replace(job, protocol=made.protocol),
        ledger,
        FACTORIAL,
        made.arms,
        made.members,
        base=ROOT,
        subjects=made.subjects,
        stack=made.stack,
        rounds=rounds or job.protocol.confirm_rounds,
        command=asked(job, "interactions", *made.subjects, "--on", on),
        generators=made.generators,
    )


def seconds_of(ledger: Ledger, made: Design, rounds: int, pairs: int) -> float | None:
    """How long `rounds` rounds of each group will take, from this ledger's newest rounds of as many pairs: their wall
    time an arm, since arms of a round start, warm up and step one after another. None without such a round."""
    seconds = []
    for entry in reversed(list(ledger.store.entries({"blocks"}, verify=False))):
        arms = len(entry.body["trial_ids"])
        if arms and len(entry.body["order"]) == arms * pairs:
            seconds.append(entry.body["wall_seconds"] / arms)
        if len(seconds) == RECENT:
            break
    trials = rounds * sum(len(group) for group in made.groups)
    return trials * sum(seconds) / len(seconds) if seconds else None


def _check(subjects: Sequence[Hypothesis], rest: Sequence[Hypothesis]) -> None:
    """Raises BadInput where an edit cannot be in an arm without another one, or not beside it."""
    standing = {one.name for one in rest}
    for one in subjects:
        if one.null:
            raise BadInput(f"{one.name} is an A/A null: it has no edit to combine", remedy="leave it out")
        missing = [name for name in one.requires if name not in standing]
        if missing:
            raise BadInput(
                f"{one.name} requires {', '.join(missing)}, and half of the arms would be without",
                remedy=f"leave {one.name} out, or with {missing[0]} in the stack and not named: --on head",
            )
    named = {one.name for one in subjects}
    for one in rest:
        missing = [name for name in one.requires if name in named]
        if missing:
            raise BadInput(
                f"{one.name} in the stack requires {missing[0]}, and half of the arms would be without",
                remedy="--on root",
            )
    try:
        stacked(edits_of(subjects), where="these edits")
    except BadInput as error:  # whose remedy is for a stack
        raise BadInput(error.message, remedy="name only one of the two: no arm can hold both") from error
    every = [*rest, *subjects]
    for place, later in enumerate(every):
        for earlier in every[:place]:
            if earlier.name in later.conflicts or later.name in earlier.conflicts:
                raise BadInput(
                    f"{earlier.name} and {later.name} conflict: no arm can hold both", remedy="leave one of them out"
                )
