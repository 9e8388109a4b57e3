"""`campaign revalidate` and `campaign interactions`: questions about several edits together, measured."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager

from campaign.discovery import DEFAULT_CAMPAIGN, project_root
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from campaign.config import Job
    from campaign.ledger import Ledger
    from campaign.report.progress import Progress
    from campaign.run.factorial import Design

REVALIDATE = "whether each accepted edit still pays, and what the whole stack is worth on root"
REVALIDATE_MORE = """\
Leaves each accepted edit out of the whole stack, in interleaved rounds; ends with root against head.
Workload and protocol are those of the campaign's runs unless overrides say otherwise.

examples:
  campaign revalidate
  campaign revalidate --apply            take out what no longer pays, the weakest first
  campaign revalidate --retry            and decide anew on rows whose neighbours changed
  campaign revalidate --rounds 12 --campaign NAME

Exit codes: 0 the stack was measured, or is empty; 2 bad input; 3 rounds were taken and say nothing (see the reason)."""
INTERACTIONS = "how edits help or eat each other: a factorial of two to nine"
INTERACTIONS_MORE = """\
Up to four edits take every combination of them, more a fraction. No names: the whole accepted stack.
The rounds and the time that it takes are said first, and asked about.

examples:
  campaign interactions prenorm_fusion recompute_trade
  campaign interactions prenorm_fusion precision_tail compile --on head --rounds 8 --yes

Exit codes: 0 there is a finding; 2 bad input, or nobody to ask and no --yes; 3 you said no, or rounds say nothing."""


def revalidate_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for a run: workload.KEY=VALUE")
    parser.add_argument("--apply", action="store_true", help="take edits that no longer pay out of the stack")
    parser.add_argument("--retry", action="store_true", help="run rejected and open edits whose neighbours changed")


def interactions_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument("words", nargs="*", metavar="NAME | OVERRIDE", help="hypotheses; overrides as for a run")
    parser.add_argument("--on", choices=("root", "head"), default="root", help="what they are combined on (root)")
    parser.add_argument("--yes", action="store_true", help="measure without asking")


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, metavar="N", help="valid rounds of each group, at least 2")


def revalidate(given: argparse.Namespace) -> int:
    """Revalidate the stack of `--campaign`; the exit code. Raises CampaignError."""
    from campaign.report.revalidation import revalidation_json, revalidation_text
    from campaign.run.conduct import says_something
    from campaign.run.context import study_job
    from campaign.run.revalidate import revalidate

    _check_rounds(given)
    campaign, overrides = _campaign(given, given.overrides)
    job = study_job(project_root(), campaign, overrides, json=given.json)
    with _measuring(job) as (ledger, progress):
        done = revalidate(job, ledger, progress, apply=given.apply, retry=given.retry, rounds=given.rounds)
        text = revalidation_json(ledger, done) if job.json else revalidation_text(ledger, done)
        _answer(progress, text, as_json=job.json)
    found = [one for one in (done.left_out, *done.apart, done.headline) if one is not None]
    return EXIT_DECIDED if all(map(says_something, found)) else EXIT_NO_DECISION


def interactions(given: argparse.Namespace) -> int:
    """Measure how the named edits interact; the exit code. Raises CampaignError."""
    from campaign.ledger import open_ledger
    from campaign.report.finding_text import finding_json, finding_text
    from campaign.run.conduct import conduct, says_something
    from campaign.run.context import key_of, study_job
    from campaign.run.factorial import design, factorial, seconds_of

    _check_rounds(given)
    names = [word for word in given.words if "=" not in word]
    settings = [word for word in given.words if "=" in word]
    own = {name: [word for word in settings if key_of(word).split(".", 1)[0] == name] for name in names}
    campaign, overrides = _campaign(given, [word for word in settings if key_of(word).split(".", 1)[0] not in own])
    job = study_job(project_root(), campaign, overrides, json=given.json)
    rounds = given.rounds or job.protocol.confirm_rounds
    with open_ledger(job.root, job.campaign, writable=False) as ledger:
        made = design(job, ledger, names, given.on, own)
        cost = _cost(made, rounds, seconds_of(ledger, made, rounds, job.protocol.pairs))
    for line in (cost, *made.notices):
        print(line, file=sys.stderr)
    if not given.yes and not _confirmed(cost):
        return EXIT_NO_DECISION
    with _measuring(job) as (ledger, progress):
        made = design(job, ledger, names, given.on, own)
        found = conduct(job, ledger, factorial(job, ledger, made, rounds, given.on), progress)
        text = finding_json(found) if job.json else finding_text(found, ledger.file)
        _answer(progress, text, as_json=job.json)
    return EXIT_DECIDED if says_something(found) else EXIT_NO_DECISION


def _campaign(given: argparse.Namespace, overrides: Sequence[str]) -> tuple[str, list[str]]:
    """The campaign that `--campaign` or `campaign.name=` names, and the other overrides."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("campaign.name=")]
    if named and given.campaign != DEFAULT_CAMPAIGN:
        raise BadInput("--campaign and campaign.name= say the same thing twice", remedy="leave one of them out")
    rest = [word for word in overrides if not word.startswith("campaign.name=")]
    return (named[-1] if named else given.campaign), rest


def _check_rounds(given: argparse.Namespace) -> None:
    if given.rounds is not None and given.rounds < 2:
        raise BadInput(f"--rounds {given.rounds}: one round has no scatter, so at least 2", remedy="--rounds 6")


@contextmanager
def _measuring(job: Job) -> Iterator[tuple[Ledger, Progress]]:
    """The device's lease, the ledger and the voice of one verb."""
    from campaign import lease
    from campaign.cli.running import terminated_like_interrupted
    from campaign.ledger import open_ledger
    from campaign.report.progress import Progress

    gc.enable()  # a verb starts without, which is for answers that take no time
    # Decisions on the way are lines beside: standard output is for the one answer.
    progress = Progress(json=job.json, output=sys.stderr if job.json else None)
    with (
        terminated_like_interrupted(),
        lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=job.campaign),
        open_ledger(job.root, job.campaign, writable=True) as ledger,
        progress,
    ):
        for notice in ledger.notices:
            progress.notice(notice)
        yield ledger, progress


def _answer(progress: Progress, text: str, *, as_json: bool) -> None:
    if as_json:
        print(text, flush=True)
    else:
        progress.decision(text)


def _cost(made: Design, rounds: int, seconds: float | None) -> str:
    """'a, b on root: 4 arms (every combination), 6 rounds of 4 arms, about 1 min 12 s'."""
    from campaign import units
    from campaign.report.progress import rounds_text

    about = f"about {units.seconds(seconds)}" if seconds is not None else "for a time not known before a first round"
    kind = f"a fraction of {2 ** len(made.subjects)}" if made.generators else "every combination"
    on = made.arms[0].name
    said = rounds_text([len(group) for group in made.groups], rounds)
    return f"{', '.join(made.subjects)} on {on}: {len(made.arms)} arms ({kind}), {said}, {about}"


def _confirmed(cost: str) -> bool:
    """Whether the person at the terminal says yes. Raises BadInput where there is none to ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(f"nobody is here to agree to {cost}", remedy="the same command with --yes")
    print("Measure this? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
