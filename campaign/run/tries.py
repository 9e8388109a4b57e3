"""`campaign try`: is what was just typed slower? The working tree against HEAD, or HEAD against the merge base.

Both arms are worktrees, each configured by the `conf/` of its own commit, so that a key which the change adds is asked
of nobody else. Tries have a ledger of their own, each stands by itself, and nothing joins a stack by one.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from campaign import lease, machine, provenance
from campaign.config import Job, jobs, load
from campaign.config.ideas import NULL
from campaign.destination import NONE
from campaign.errors import BadInput, CampaignError
from campaign.ledger import Ledger, campaigns, open_ledger
from campaign.provenance import Checkout
from campaign.records import Arm, Code, Decision, Edit, Floor, Hypothesis, ParityClaim, Plan
from campaign.records.plan import LOSS_BOUND, PARITY_KINDS, SLOWER
from campaign.report.progress import Progress
from campaign.run import conclude, gather, mirror
from campaign.run.context import key_of, plain
from campaign.run.declare import TRIES as CAMPAIGN
from campaign.run.declare import Arms, floor_for, registered, stamp_of, standing_of

LOSS = "loss"
OWN = ("hypothesis", "campaign")  # keys that a try says itself


@dataclass(frozen=True)
class Sides:
    """What is compared: two codes and their names. `files` changed between them, `left_out` are files of the working
    tree that no patch holds, `patch` is the working tree's where it is dirty."""

    before: Code
    after: Code
    before_name: str
    after_name: str
    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    patch: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Tried:
    """What a try came to."""

    sides: Sides
    decision: Decision
    plan: Plan
    file: Path


def tried(root: Path, base: str, words: Sequence[str], parity: str, progress: Progress) -> Tried:
    """Measure one try to its verdict. `base` is a ref, empty for the working tree against HEAD; `words` are overrides.

    Raises BadInput where there is nothing to measure, and CampaignError.
    """
    job = _job(root, base, words, parity)
    sides = _sides(job.root, base)
    with (
        lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=job.campaign),
        open_ledger(job.root, CAMPAIGN, writable=True) as ledger,
        progress,
        ExitStack() as stack,
    ):
        for notice in (*ledger.notices, *ledger.recover_inflight()):
            progress.notice(notice)
        if sides.patch:
            ledger.keep(sides.patch, ".patch")
        progress.notice(f"{sides.after_name} against {sides.before_name}: {_some(sides.files)}")
        if sides.left_out:
            progress.notice(f"not in it: {'; '.join(sides.left_out)}")
        where = {
            role: stack.enter_context(provenance.checkout(job.root, code, [sides.patch] if code.patches else []))
            for role, code in (("control", sides.before), ("treatment", sides.after))
        }
        arms = _arms(job, sides, where, progress)
        fingerprint, warnings = machine.fingerprint(job.device), machine.warnings(job.device)
        floor = _floor(job, ledger, arms.control, fingerprint)
        evidence = None
        while evidence is None:  # another process wrote the first line of this ledger meanwhile
            standing = standing_of(ledger)
            evidence = registered(job, ledger, arms, standing, fingerprint, warnings, floor=floor, attempt=1)
        ledger.stamp = stamp_of(evidence.plan)
        progress.start(evidence.plan, warnings)
        evidence, verdict = gather(job, ledger, evidence, progress, where)
        decision = conclude(ledger, evidence, verdict)
        mirror(job, ledger, [decision.id], progress)
        return Tried(sides, decision, evidence.plan, ledger.file)


def _job(root: Path, base: str, words: Sequence[str], parity: str) -> Job:
    """The job of a try: the person's workload and protocol, and a hypothesis that asks whether the change is slower.

    Its levels are the protocol's, changed about: what accepts a gain by chance in an experiment (alpha) is here what
    accuses a change by chance, and is spent on the upper bound.
    """
    for word in words:
        if key_of(word).split(".", 1)[0] in OWN or key_of(word).startswith("edit."):
            raise BadInput(
                f"{word!r}: a try says itself what is compared, and has its own ledger (runs/{CAMPAIGN})",
                remedy="leave it out; campaign hypothesis=NAME edit.ref=BRANCH measures an edit for the stack",
            )
    if parity not in PARITY_KINDS:
        raise BadInput(f"--parity {parity!r}: one of {', '.join(PARITY_KINDS)}", remedy=f"--parity {LOSS}")
    tracking = [] if any(key_of(word).split(".", 1)[0] == "tracking" for word in words) else [f"tracking={NONE}"]
    (found,) = jobs(root, [*words, *tracking, f"hypothesis={NULL}", f"campaign.name={CAMPAIGN}"])
    job = plain(found)
    hypothesis = Hypothesis(
        name=CAMPAIGN,
        claim="The change does not slow the step.",
        mechanism="not said: a try",
        acts_on="nothing",
        edit=Edit() if base else Edit(worktree="dirty"),
        predicted_ratio=1.0,
        parity=ParityClaim(parity, LOSS_BOUND) if parity == LOSS else ParityClaim(parity),
        asks=SLOWER,
    )
    usual = job.protocol
    protocol = replace(
        usual,
        decisive=True,
        alpha=usual.beta,
        alpha_split=usual.beta_split,
        beta=usual.alpha,
        beta_split=usual.alpha_split,
        arms=2,
    )
    asked = ["python", "-m", "campaign", "try", *(["--base", base] if base else []), *words]
    asked += ["--parity", parity] if parity != LOSS else []
    return replace(job, hypothesis=hypothesis, protocol=protocol, typed=shlex.join(asked))


def _sides(root: Path, base: str) -> Sides:
    """What is compared. Raises BadInput where nothing is, and where a patch cannot hold the working tree."""
    head = provenance.head(root)
    start = head
    if base:
        start = provenance.merge_base(root, head, provenance.commit_of(root, base, "--base"), f"--base {base}")
    change = provenance.tree_change(root)
    if not change.patch and start == head:
        left_out = f" (left out: {change.about['left_out'][0]})" if change.about["left_out"] else ""
        raise BadInput(
            (f"HEAD ({head[:12]}) adds nothing to {base} and the" if base else "the")
            + f" working tree is clean: there is nothing to measure against HEAD ({head[:12]}){left_out}",
            remedy="change a file; or campaign try --base BRANCH, for what this branch adds to another",
        )
    patches = (hashlib.sha256(change.patch).hexdigest(),) if change.patch else ()
    committed = provenance.files_between(root, start, head) if start != head else ()
    after = "the working tree" if not base else f"HEAD {head[:12]}" + (" and the working tree" if change.patch else "")
    return Sides(
        before=Code(start),
        after=Code(head, patches),
        before_name=f"HEAD {head[:12]}" if not base else f"{start[:12]}, where it left {base}",
        after_name=after,
        files=tuple(dict.fromkeys((*committed, *change.files))),
        left_out=tuple(change.about["left_out"]),
        patch=change.patch,
    )


def _arms(job: Job, sides: Sides, where: dict[str, Checkout], progress: Progress) -> Arms:
    """Both arms, each as the `conf/` of its own commit configures it; the project's own where that has none for it."""
    found, notes = {}, []
    for role, code, name in (
        ("control", sides.before, sides.before_name),
        ("treatment", sides.after, sides.after_name),
    ):
        arm = job.arm(role, name, [])
        try:
            older = load(where[role].root, [*job.overrides, f"hypothesis={NULL}"], searchpath=job.composer.searchpath)
            arm = older.arm(role, name, [])
        except BadInput as error:
            notes.append(f"{name} is configured by the conf/ of today: its own says {error.message}")
            progress.notice(notes[-1])
        found[role] = replace(arm, code=code)
    about = {CAMPAIGN: {"kind": "try", "before": str(sides.before), "after": str(sides.after), "notes": notes}}
    return Arms((), found["control"], found["treatment"], two_arms="a try has no stack", about=about)


def _floor(job: Job, ledger: Ledger, control: Arm, fingerprint: dict[str, object]) -> tuple[str, Floor] | None:
    """The floor of this machine and workload: measured in this ledger, else in another campaign of the project."""
    if found := floor_for(job, ledger, control, fingerprint):
        return found
    for name in campaigns(job.root):
        with suppress(CampaignError), open_ledger(job.root, name, writable=False) as other:
            if name != CAMPAIGN and (found := floor_for(job, other, control, fingerprint)):
                return f"{name}/{found[0]}", found[1]
    return None


def _some(files: Sequence[str], most: int = 3) -> str:
    return ", ".join(files[:most]) + (f" and {len(files) - most} more files" if len(files) > most else "")
