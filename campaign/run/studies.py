"""Questions about several edits: which arms they compare, declared before the first timing.

A study is composed from the stack here (`leave_one_out`, `parts`, `headline`; `factorial` in its own module) and
measured by `conduct`. Nothing is probed: each edit's parity and engagement were looked at when it was decided on.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from campaign import effects, interactions, machine
from campaign.config import Job
from campaign.config.compose import searchpath_override
from campaign.errors import BadInput
from campaign.ledger import Ledger, now
from campaign.records import Arm, Decision, Edit, Found, Hypothesis, Protocol, Study
from campaign.records.study import HEADLINE, LEAVE_ONE_OUT, PARTS
from campaign.report.finding_text import finding_json, finding_text
from campaign.report.progress import Progress
from campaign.run.conduct import conduct
from campaign.run.context import PLACE, key_of, plain
from campaign.run.declare import accepted_here, check_place, code_of, floor_for, new_id, source_of
from campaign.run.trees import Composition

HEAD, ROOT = "head", "root"
LONGEST_ROLE = 150  # beside the study's id, the stage and the place, in an entry's id of at most 200 characters


def declared(
    job: Job,
    ledger: Ledger,
    kind: str,
    arms: Sequence[Arm],
    members: Mapping[str, tuple[str, ...]],
    *,
    base: str,
    subjects: Sequence[str],
    stack: Sequence[str],
    rounds: int,
    command: str,
    of: str = "",
    generators: tuple[str, ...] = (),
) -> Study:
    """A study that is not registered yet: these arms here and now. `stack` are the names of the accepted edits. Its
    deadlines are the longest under which one of them was measured, since an arm may take as long (it compiles).

    Raises BadInput where the ledger belongs to another place, or names are too long for ledger entries.
    """
    check_place(job, ledger)
    longest = max((arm.role for arm in arms), key=len)
    if len(longest) > LONGEST_ROLE:
        raise BadInput(
            f"the names of {longest.replace('+', ', ')} are too long together: at most {LONGEST_ROLE} characters",
            remedy="name fewer edits",
        )
    plans = [ledger.plan(decision.plan_id) for decision in ledger.stack()]
    fingerprint, warnings = machine.fingerprint(job.device), machine.warnings(job.device)
    floor = floor_for(job, ledger, next(arm for arm in arms if arm.role == base), fingerprint)
    return Study(
        id=new_id(kind),
        kind=kind,
        campaign=job.campaign,
        workload=job.workload,
        device=job.device,
        arms=tuple(arms),
        base=base,
        subjects=tuple(subjects),
        members=dict(members),
        groups=interactions.groups([arm.role for arm in arms], base),
        protocol=patient(job.protocol, [plan.protocol for plan in plans]),
        rounds=rounds,
        stack=tuple(stack),
        threshold=effects.threshold(job.protocol, floor[1] if floor else None),
        floor_id=floor[0] if floor else "",
        memory_floor_bytes=floor[1].memory_range_bytes if floor else 0,
        fingerprint=fingerprint,
        code=code_of(job, *arms),
        source=source_of(job, ledger, warnings),
        machine_line=machine.describe(fingerprint),
        command=command,
        registered_at=now(),
        generators=generators,
        of=of,
    )


def leave_one_out(job: Job, ledger: Ledger, rounds: int | None = None, command: str = "") -> Study | None:
    """Head, head without each accepted edit, and root; None for an empty stack. `rounds` None: as many as confirm.

    An edit that another one requires is not left out, since the other cannot be without it; then root is no arm either.
    """
    accepted = accepted_here(job, ledger)
    required = {name for one in accepted for name in one.requires}
    subjects = [one.name for one in accepted if one.name not in required]
    if not subjects:
        return None
    made = Composition(job, ledger, edits_of(accepted))
    arms = [made.arm(HEAD, _name(accepted), edits_of(accepted))]
    members: dict[str, tuple[str, ...]] = {HEAD: tuple(subjects)}
    for left_out in subjects if len(accepted) > 1 else ():  # of one edit, root is what is left
        rest = [one for one in accepted if one.name != left_out]
        role = f"without_{left_out}"
        arms.append(made.arm(role, _name(rest), edits_of(rest)))
        members[role] = tuple(name for name in subjects if name != left_out)
    if len(subjects) == len(accepted):  # else the gains of the subjects are not all there is between root and head
        arms.append(made.arm(ROOT, ROOT, []))
        members[ROOT] = ()
    return declared(
        job,
        ledger,
        LEAVE_ONE_OUT,
        arms,
        members,
        base=HEAD,
        subjects=subjects,
        stack=[one.name for one in accepted],
        rounds=rounds or job.protocol.confirm_rounds,
        command=command or asked(job, "revalidate"),
    )


def headline(job: Job, ledger: Ledger, rounds: int | None = None, command: str = "") -> Study | None:
    """Root against head; None for an empty stack. `rounds` None: as many as the last look has."""
    accepted = accepted_here(job, ledger)
    names = tuple(one.name for one in accepted)
    if not names:
        return None
    made = Composition(job, ledger, edits_of(accepted))
    return declared(
        job,
        ledger,
        HEADLINE,
        [made.arm(ROOT, ROOT, []), made.arm(HEAD, _name(accepted), edits_of(accepted))],
        {ROOT: (), HEAD: names},
        base=ROOT,
        subjects=names,
        stack=names,
        rounds=rounds or job.protocol.looks[-1],
        command=command or asked(job, "revalidate"),
    )


def parts(job: Job, ledger: Ledger, decision: Decision, rounds: int | None = None) -> Study:
    """Head, head without each part of the accepted set that `decision` is about, and head without the set (its root).

    Raises BadInput where the set is no longer in the stack, or has no parts.
    """
    accepted = accepted_here(job, ledger)
    whole = next((one for one in accepted if one.name == decision.hypothesis), None)
    if whole is None or not whole.parts:
        said = "is not in the stack" if whole is None else "is a single edit"
        raise BadInput(f"{decision.hypothesis} {said}: there is nothing to take apart", remedy="campaign stack")
    names = [one.name for one in whole.parts]
    others = [one for one in accepted if one is not whole]
    made = Composition(job, ledger, edits_of(accepted))
    arms = [made.arm(HEAD, _name(accepted), edits_of(accepted))]
    members = {HEAD: tuple(names), ROOT: ()}
    for left_out in names:
        rest = [one for one in whole.parts if one.name != left_out]
        role = f"without_{left_out}"
        edits = [*edits_of(others), *((f"{whole.name}.{one.name}", one.edit) for one in rest)]
        arms.append(made.arm(role, f"{_name(accepted)} without {left_out}", edits))
        members[role] = tuple(one.name for one in rest)
    arms.append(made.arm(ROOT, _name(others), edits_of(others)))
    return declared(
        job,
        ledger,
        PARTS,
        arms,
        members,
        base=HEAD,
        subjects=names,
        stack=[one.name for one in accepted],
        rounds=rounds or job.protocol.confirm_rounds,
        command=asked(job, "revalidate"),
        of=decision.id,
    )


def take_apart(job: Job, ledger: Ledger, decision: Decision, progress: Progress) -> Found:
    """Measure what each part of an accepted set adds to the others, and show it."""
    found = conduct(job, ledger, parts(plain(job), ledger, decision), progress)
    progress.decision(finding_json(found) if job.json else finding_text(found, ledger.file))
    return found


def whole_sets(ledger: Ledger) -> list[Decision]:
    """The accepted sets that were not taken apart yet, in stack order."""
    done = {found.study_id for found in ledger.findings() if found.finding.kind == PARTS}
    apart = {study.of for study in ledger.studies() if study.id in done}
    return [one for one in ledger.stack() if one.id not in apart and ledger.plan(one.plan_id).hypothesis.parts]


def patient(protocol: Protocol, others: Sequence[Protocol]) -> Protocol:
    """`protocol` with the longest deadlines of it and the others."""
    every = [protocol, *others]
    return replace(
        protocol,
        start_deadline_seconds=max(one.start_deadline_seconds for one in every),
        reply_deadline_seconds=max(one.reply_deadline_seconds for one in every),
    )


def edits_of(accepted: Sequence[Hypothesis]) -> list[tuple[str, Edit]]:
    """Each hypothesis's name and edit, as `Job.arm` takes them."""
    return [(one.name, one.edit) for one in accepted]


def asked(job: Job, verb: str, *words: str) -> str:
    """The command that asks for a study again."""
    about = [text for text in job.overrides if key_of(text).split(".", 1)[0] in PLACE]
    line = ["python", "-m", "campaign", verb, *words, "--campaign", job.campaign]
    return shlex.join([*line, *searchpath_override(job.composer.searchpath), *about])


def _name(accepted: Sequence[Hypothesis]) -> str:
    return "+".join((ROOT, *(one.name for one in accepted)))
