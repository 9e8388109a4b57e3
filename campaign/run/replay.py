"""A recorded decision measured again: its exact arms, from its own commit and patch in a separate worktree.

The arms are recorded whole in the plan (target, config, environment), the code as commit and patch. So nothing of
today's configuration or files takes part, and nothing is timed before the worktree is shown to hold the code that ran,
and the arms to import it from there. What measures is the `campaign` that is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import campaign
from campaign import lease, machine, provenance
from campaign.config import Job
from campaign.config.compose import Composer
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, BadInput
from campaign.ledger import Ledger, now, open_ledger
from campaign.records import REPLAY, Arm, Decision, Found, Plan, Study
from campaign.report.evidence_text import found as row_of
from campaign.report.progress import Progress
from campaign.report.replayed import Replayed, replayed_json, replayed_text
from campaign.run.conduct import conduct
from campaign.run.context import key_of, of_command
from campaign.run.declare import code_of, new_id, source_of
from campaign.run.trees import patch_of
from campaign.tracking import address

IMPORT_SECONDS = 600.0
# In a process of its own, found as a trial finds it: where every module came from that the arm's target needs.
_IMPORTS = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
importlib.import_module(sys.argv[2])
files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
print(json.dumps({name: file for name, file in files.items() if isinstance(file, str)}))
"""


@dataclass(frozen=True)
class _Recorded:
    """The decision that is asked for, its plan, and the bytes of its patch."""

    decision: Decision
    plan: Plan
    patch: bytes


def replay(root: Path, name: str, asked: str, rounds: int | None = None, *, as_json: bool = False) -> int:
    """Measure a decision of campaign `name` again and show it beside what is recorded; the exit code (0 measured, 3 the
    rounds say nothing). `asked` is its number, its id, or a hypothesis (the newest). `rounds` None: as many as confirm.

    Raises UnknownName, and BadInput where its code cannot be rebuilt exactly: nothing was timed then.
    """
    progress = Progress(json=as_json)
    with open_ledger(root, name, writable=False) as ledger:
        recorded = _recorded(ledger, asked)
    plan = recorded.plan
    with _files_of(root, recorded, progress) as (tree, notices):
        job = _job(root, tree, plan, as_json=as_json)
        with (
            lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=name),
            open_ledger(root, name, writable=True) as ledger,
            progress,
        ):
            for notice in (*ledger.notices, *notices):
                progress.notice(notice)
            study = _study(job, ledger, recorded, rounds or plan.protocol.confirm_rounds)
            found = conduct(job, ledger, study, progress)
            elsewhere = _elsewhere(plan, study)
            said = Replayed(recorded.decision, found, *elsewhere, tuple(notices), str(tree), plan.threshold)
            progress.decision(replayed_json(said) if as_json else replayed_text(said, ledger.file))
    return EXIT_DECIDED if _measured(found) else EXIT_NO_DECISION


@contextmanager
def _files_of(root: Path, recorded: _Recorded, progress: Progress) -> Iterator[tuple[Path, list[str]]]:
    """The folder that the arms run in, and what to know of its code: a worktree of the recorded commit and patch. Arms
    with code of their own have a worktree each in any case, and were configured whole."""
    plan = recorded.plan
    if plan.control.code is not None:
        yield root, []
        return
    progress.notice(f"checking out {plan.source['commit'][:12]} in a worktree of its own")
    with provenance.worktree(root, plan.source["commit"], recorded.patch) as tree:
        notices = [*_same_code(root, tree, plan), *_left_out(plan)]
        _own_copies(root, tree, plan)
        yield tree, notices


def _measured(found: Found) -> bool:
    return found.finding.effect is not None


def _recorded(ledger: Ledger, asked: str) -> _Recorded:
    row = row_of(ledger, asked)
    decision = next(one for one in ledger.decisions() if one.id == row["id"])
    plan = ledger.plan(decision.plan_id)
    status, why = plan.source.get("status"), plan.source.get("reason") or "no reason was recorded"
    if status != "ok" or not plan.source.get("commit"):
        raise BadInput(
            f"the code of decision {decision.sequence} ({decision.hypothesis}) was not recorded: {why}",
            remedy=f"git init and commit, then measure it again: {decision.command}",
        )
    sha256 = plan.source.get("patch_sha256")
    for one in (one for arm in plan.arms if arm.code for one in arm.code.patches):
        patch_of(ledger, one)
    return _Recorded(decision, plan, patch_of(ledger, sha256) if sha256 and plan.control.code is None else b"")


def _same_code(root: Path, tree: Path, plan: Plan) -> list[str]:
    """What to know about the code in `tree`, which is shown to be the plan's. Raises BadInput naming what differs."""
    targets = [plan.control.target, plan.treatment.target]
    if provenance.code_hash(tree, targets) == plan.code:
        return []
    newer = "the arms' code is that of the decision; campaign itself has changed since, and as it is now it measures"
    then: dict[str, str] = plan.source.get("code_parts", {})
    parts = provenance.code_parts(tree, targets)
    differing = sorted(part for part in then.keys() | parts.keys() if then.get(part) != parts.get(part))
    if then and differing == ["campaign"]:
        return [newer]
    beside = tree / "campaign"  # a project that is campaign's own repository
    if beside.is_dir() and provenance.code_hash(tree, targets, package=beside) == plan.code:
        return [newer]
    if provenance.code_hash(root, targets) == plan.code:  # nothing changed since: the files can be named
        what = f"these files are not in the commit and its patch: {_some(provenance.differing(root, tree, targets))}"
    elif then:
        what = f"what differs: {', '.join(part for part in differing if part != 'campaign')}"
    else:
        what = "which file differs is not recorded; campaign itself may have changed since"
    missing = plan.source.get("left_out", ())
    what += f"; left out of the patch then: {_some(missing)}" if missing else ""
    raise BadInput(
        f"commit {plan.source['commit'][:12]} with its patch is not the code that ran ({what})",
        remedy=f"commit those files, then measure it again: {plan.command}",
    )


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _left_out(plan: Plan) -> list[str]:
    """Files of that day that no patch holds; none of them is code, or the hash would differ."""
    names = plan.source.get("left_out", ())
    return [f"not recorded then, so not there: {_some(names)}"] if names else []


def _own_copies(root: Path, tree: Path, plan: Plan) -> None:
    """Raise BadInput unless every module of the project that the arms import comes from `tree`.

    A package without `__init__.py`, or a module that git ignores, would else be taken from the project itself or from
    an editable install of it: two arms of today's code would be timed.
    """
    for arm in {(arm.target, tuple(arm.environment.items())): arm for arm in (plan.control, plan.treatment)}.values():
        files = {name: Path(file).resolve() for name, file in _imported(tree, arm).items()}
        own = {path.stem for path in tree.iterdir()} - {"campaign"}
        foreign = {
            name: file
            for name, file in files.items()
            if not file.is_relative_to(tree.resolve())
            and (name.partition(".")[0] in own or _of_project(file, root.resolve()))
        }
        if foreign:
            module, file = min(foreign.items())
            raise BadInput(
                f"{arm.role} would import {module} from {file}, not from the decision's own code",
                remedy="commit that module (and its __init__.py), then measure the decision again",
            )


def _of_project(file: Path, root: Path) -> bool:
    """Whether a module lies in the project, outside of installed packages and of campaign itself."""
    package = Path(campaign.__file__).resolve().parent
    return file.is_relative_to(root) and "site-packages" not in file.parts and not file.is_relative_to(package)


def _imported(tree: Path, arm: Arm) -> dict[str, str]:
    """The file of each module that is there once the arm's target was imported, in a process like a trial's."""
    environment = {**os.environ, **arm.environment}
    paths = [str(Path(campaign.__file__).resolve().parent.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-c", _IMPORTS, str(tree), arm.target.rpartition(".")[0]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInput(
            f"{arm.target} of commit and patch cannot be imported here: {last}",
            remedy="install what it needed then (environment.json beside the decision in MLflow lists the packages)",
        )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def _job(root: Path, tree: Path, plan: Plan, *, as_json: bool) -> Job:
    """What a measurement needs to know, from the plan alone; its root is the worktree."""
    words = of_command(plan.command, ("lease",))
    said = {key_of(word): word.partition("=")[2] for word in words}
    return Job(
        root=tree,
        campaign=plan.campaign,
        workload=plan.workload,
        device=plan.device,
        hypothesis=plan.hypothesis,
        protocol=plan.protocol,
        tracking=address.of_command(plan.command) or address.declared(root),
        lease_wait_seconds=float(said.get("lease.wait_seconds", 0.0)),
        overrides=(),
        json=as_json,
        composer=Composer(tree),
    )


def _study(job: Job, ledger: Ledger, recorded: _Recorded, rounds: int) -> Study:
    decision, plan = recorded.decision, recorded.plan
    fingerprint, warnings = machine.fingerprint(plan.device), machine.warnings(plan.device)
    arms = (plan.control, plan.treatment)
    return Study(
        id=new_id(f"replay-{decision.sequence}"),
        kind=REPLAY,
        campaign=plan.campaign,
        workload=plan.workload,
        device=plan.device,
        arms=arms,
        base=plan.control.role,
        subjects=(plan.hypothesis.name,),
        members={plan.control.role: (), plan.treatment.role: (plan.hypothesis.name,)},
        groups=((plan.control.role, plan.treatment.role),),
        protocol=plan.protocol,
        rounds=rounds,
        stack=plan.stack,
        threshold=plan.threshold,
        floor_id=plan.floor_id,
        fingerprint=fingerprint,
        code=code_of(job, *arms),
        source=source_of(job, ledger, warnings),
        machine_line=machine.describe(fingerprint),
        command=f"python -m campaign replay {decision.id} --campaign {plan.campaign} --rounds {rounds}",
        registered_at=now(),
        memory_floor_bytes=plan.memory_floor_bytes,
        of=decision.id,
    )


def _elsewhere(plan: Plan, study: Study) -> tuple[dict[str, tuple[Any, Any]], dict[str, tuple[Any, Any]]]:
    """What of the machine, and which packages, are other than then: name to (then, now)."""
    then, there = plan.source.get("packages", {}), study.source["packages"]
    return _differing(plan.fingerprint, study.fingerprint), _differing(then, there) if then else {}


def _differing(then: dict[str, Any], there: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = sorted(then.keys() | there.keys())
    return {key: (then.get(key), there.get(key)) for key in keys if then.get(key) != there.get(key)}
