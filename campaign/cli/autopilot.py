"""`campaign run --all`: a whole campaign by itself, from the floor to the page.

The floor (an A/A null, unless one of here and now is in the ledger), every idea in order of its predicted ceiling on
the stack of its turn, those that lost again where their neighbours changed, revalidation, and the page. It stops by
itself and says why. What it does next is decided in `run.autopilot` from the ledger alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from campaign import units
from campaign.cli import running, show_error
from campaign.cli.verbs import Parser
from campaign.config import Job, ideas
from campaign.discovery import project_root
from campaign.errors import (
    EXIT_DECIDED,
    EXIT_INTERRUPTED,
    EXIT_NO_DECISION,
    EXIT_SWEEP_FAILED,
    BadInput,
    CampaignError,
    LeaseHeld,
    LedgerDamaged,
    LedgerUnwritable,
)
from campaign.report.flight import Flight, flight_json, flight_text, write_page
from campaign.report.sweep import NONE, REFUSED, Ended, summary
from campaign.run.budget import seconds_of
from campaign.run.declare import check_place
from campaign.verdicts import STALE

if TYPE_CHECKING:
    from campaign.run.autopilot import Idea, Survey
    from campaign.run.sweep import Sweep

ENDS_ALL = (LeaseHeld, LedgerDamaged, LedgerUnwritable)  # what the next idea would meet as well
REVALIDATION = "revalidation"
MORE = """\
examples:
  campaign run --all
  campaign run --all --budget 2h
  campaign run --all --only prenorm_fusion,recompute_trade workload.seed=1
  campaign run --all --only LIST          the hypotheses listed in conf/ideas/LIST.yaml

Ends with revalidation and the page runs/NAME/campaign.md. Interrupted or killed, the same command goes on.
A try that was started is finished: the budget is asked before each, and --budget 5s may be too little for one.
Exit codes: 0 every idea that was started got its decision; 2 bad input; 4 some had none; 130 interrupted."""


def run_all(words: Sequence[str]) -> int:
    """Go through every idea; the exit code. Raises CampaignError."""
    parser = _parser()
    given = parser.parse_intermixed_args(list(words))
    if given.help:
        print(parser.format_help().rstrip())
        return EXIT_DECIDED
    budget = None if given.budget is None else seconds_of(given.budget)
    only = _names(given.only)
    null, found, misfits = ideas(project_root(), given.overrides, only, json=given.json)
    if not null.protocol.decisive:
        raise BadInput(f"protocol={null.protocol.name} can accept nothing", remedy="protocol=standard")
    from campaign.run.autopilot import diagnosed_ceilings, ordered
    from campaign.run.sweep import AUTOPILOT, begun

    asked = [*given.overrides, f"--only={','.join(only)}", f"--budget={budget}", f"--apply={given.apply}"]
    with running.terminated_like_interrupted(), begun(AUTOPILOT, [null], asked) as entered:
        sweep = entered[null.campaign]
        pilot = Pilot(null, ordered(found, diagnosed_ceilings(sweep.ledger, null)), misfits, sweep)
        pilot.budget, pilot.apply = budget, given.apply
        try:
            code = pilot.fly()
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except ENDS_ALL:
            print(f"\n{summary(pilot.ended)}", file=sys.stderr)
            raise
        pilot.land(code)
        return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="campaign run --all",
        description="A whole campaign by itself: floor, every idea, retries, revalidation, page.",
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for a run, for all of them")
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    parser.add_argument("--all", action="store_true", help="every hypothesis there is")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="these hypotheses, or a list of conf/ideas/NAME.yaml")
    parser.add_argument(
        "--budget", metavar="2h", help="start nothing that leaves no time to revalidate within this (90s, 30m, 1h30m)"
    )
    parser.add_argument("--apply", action="store_true", help="take out of the stack what no longer pays in the end")
    parser.add_argument("--json", action="store_true", help="the outcomes as JSON lines on stdout")
    return parser


def _names(only: str | None) -> list[str]:
    """The names of --only; none where it was not given. Raises BadInput where it was and names nothing."""
    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    if only is not None and not names:
        raise BadInput(
            f"--only {only!r} names no hypothesis", remedy="--only NAME,NAME, or leave it out for every hypothesis"
        )
    return names


class Pilot:
    """One autopilot at work. `ended` has a line for every try, as in a sweep."""

    def __init__(self, null: Job, ideas: list[Idea], misfits: dict[str, str], sweep: Sweep) -> None:
        from campaign.run.autopilot import study_of
        from campaign.run.budget import spent_seconds

        self.null, self.ideas, self.sweep = null, ideas, sweep
        self.misfits = misfits  # hypotheses that are not about this workload, and why
        self.budget: float | None = None  # in seconds
        self.apply = False
        self.ledger = sweep.ledger
        self.study = study_of(null)
        self.earlier = spent_seconds(self.ledger, sweep.line)  # by processes that were killed
        self.started = time.monotonic()
        self.ended: list[Ended] = []
        self.left_alone: set[str] = set()
        self.survey: Survey | None = None
        self.stopped = self.why = self.headline = ""
        self.not_tried: tuple[str, ...] = ()

    def fly(self) -> int:
        """Everything in order; the exit code. Raises BadInput where the ledger belongs to another place."""
        check_place(self.null, self.ledger)
        self._recall()
        shown = ", ".join(f"{idea.name} {idea.ceiling_text}" for idea in self.ideas)
        _say(f"{len(self.ideas)} ideas, the highest ceiling first: {shown or 'none'}")
        for name, why in self.misfits.items():
            _say(f"not tried: {name}: {why}")
        for step in (self._floor, self._try_all, self._revalidate):
            if (code := step()) is not None:
                return code
        undecided = any(one.code != EXIT_DECIDED for one in self.ended)
        return EXIT_SWEEP_FAILED if undecided else EXIT_DECIDED

    def land(self, code: int) -> None:
        """The page, what it came to, and the end in the ledger unless it was interrupted."""
        if code == EXIT_INTERRUPTED:
            self.stopped, self.why = "interrupted", "interrupted; the same command goes on"
        flight = Flight(
            stopped=self.stopped,
            why=self.why,
            struck={**self.misfits, **(self.survey.struck if self.survey else {})},
            slower=self.survey.slower if self.survey else (),
            not_tried=self.not_tried,
            headline=self.headline,
            page=str(write_page(self.ledger)),
            spent_seconds=self._spent(),
            budget_seconds=self.budget,
        )
        table = f"\n{summary(self.ended)}\n" if self.ended else ""
        print(f"{table}\n{flight_text(flight)}", file=sys.stderr if self.null.json else sys.stdout, flush=True)
        if self.null.json:
            print(flight_json(self.ended, flight), flush=True)
        if code != EXIT_INTERRUPTED:
            self.sweep.end()

    def _recall(self) -> None:
        """What a killed process of this campaign had decided."""
        if self.sweep.resumed:
            found = []
            rows = self.sweep.recall(self.null).rows  # whether the floor holds is asked where it is needed
            if rows:
                found.append(running.recall(self.null, rows))
            for job in (idea.job for idea in self.ideas):
                while (one := running.before(job, self.sweep)) is not None:
                    found.append(one)
            self.ended = sorted(found, key=lambda one: one.row["sequence"] if one.row else 0)
            _say(f"going on where it was interrupted: {len(found)} decided in {units.seconds(self.earlier)}")

    def _floor(self) -> int | None:
        """Measure what this machine resolves, unless that is known; an exit code where nothing can be measured."""
        from campaign.run.autopilot import BIASED, floor_here

        name = self.null.hypothesis.name
        if floor_here(self.null, self.ledger) is not None:
            _say("floor: measured here less than seven days ago, and it holds")
        elif any(one.label.split()[0] == name for one in self.ended):
            pass
        elif why := self._too_late(self.null, floor=True):
            _say(f"floor: {why}")
        else:
            _say(f"floor: {name}")
            if self._outcome(self.null).code == EXIT_INTERRUPTED:
                return EXIT_INTERRUPTED
        if floor_here(self.null, self.ledger) is None:
            _say("floor: not measured, so that d is the protocol's min_effect")
        nulls = [one.row["reason"] for one in self.ended if one.row and one.row["hypothesis"] == name]
        if nulls and nulls[-1] == BIASED:
            self.stopped, self.why = (
                BIASED,
                "two equal arms measured apart: nothing can be compared on this machine now",
            )
            return EXIT_SWEEP_FAILED
        return None

    def _try_all(self) -> int | None:
        """One idea after another until none is left or the budget is; an exit code on an interrupt."""
        from campaign.run.autopilot import BUDGET, accepted_now, blocked, stopped, survey, thresholds

        d = thresholds(self.null, self.ideas, self.ledger)
        while True:
            accepted = accepted_now(self.ledger)
            rows = [row for row in self.ledger.decision_rows() if row["id"] not in self.sweep.outdated]
            found = survey(self.ideas, rows, accepted, d, self.sweep.line, self.left_alone)
            self._tell(found)
            choice = [(idea, "") for idea in found.untried] or list(found.again)
            if not choice:
                self.stopped, self.why = stopped(found, d)
                return None
            idea, change = choice[0]
            if why := self._too_late(idea.job):
                self.stopped, self.why = BUDGET, why
                self.not_tried = tuple(idea.name for idea, _ in choice)
                return None
            on = "+".join(("root", *(one.name for one in accepted)))
            _say(f"{f'again ({change})' if change else 'try'}: {idea.name}, {idea.ceiling_text}, on {on}")
            ended = self._outcome(idea.job)
            if ended.code == EXIT_INTERRUPTED:
                return EXIT_INTERRUPTED
            if ended.ended == REFUSED and not ended.tests and blocked(idea.job, accepted_now(self.ledger)):
                self.ended.pop()  # another process's accept stands in its way: struck out as if it had come before
            elif ended.row is None or ended.row["reason"] == STALE:
                self.left_alone.add(idea.name)

    def _tell(self, found: Survey) -> None:
        """What is struck out, each reason once."""
        told = self.survey.struck if self.survey else {}
        for name, why in found.struck.items():
            if told.get(name) != why:
                _say(f"not tried: {name}: {why}")
        self.survey = found

    def _too_late(self, job: Job, *, floor: bool = False) -> str:
        """Why the budget has no time for `job` and the revalidation after it; empty where it has."""
        from campaign.run.budget import arm_seconds, floor_seconds, too_late, try_seconds

        if self.budget is None:
            return ""
        each, rows = arm_seconds(self.ledger), self.ledger.decision_rows()
        cost = try_seconds(rows, job.protocol, each)
        if floor and each is not None:
            cost = floor_seconds(job.protocol, each)
        edits = len(self.ledger.stack_rows()) + (not floor)
        return too_late(self.budget, self._spent(), cost, self.study.protocol, edits=edits, each_arm=each)

    def _revalidate(self) -> None:
        """Every accepted edit again, and the headline; what goes wrong with it is a line of the table."""
        from campaign.run.autopilot import headline_since, revalidated

        if not self.ledger.stack_rows():
            self.headline = "nothing is accepted: head is root"
            return
        self.headline = headline_since(self.ledger, self.sweep.line)
        if self.headline:
            return
        _say("revalidation of the stack")
        try:
            done = revalidated(self.study, self.ledger, apply=self.apply)
        except ENDS_ALL:
            raise
        except CampaignError as error:
            show_error(error, as_json=self.null.json)
            self.ended.append(Ended(REVALIDATION, error.exit_code, ended=REFUSED, why=error.message))
            return
        if done.headline is not None:
            self.headline = done.headline.finding.sentence
            if done.headline.finding.effect is None:
                self.ended.append(Ended(REVALIDATION, EXIT_NO_DECISION, ended=NONE, why=self.headline))

    def _outcome(self, job: Job) -> Ended:
        from campaign.run import main

        self.ended.append(running.outcome(job, main, self.sweep, through=ENDS_ALL))
        return self.ended[-1]

    def _spent(self) -> float:
        return self.earlier + time.monotonic() - self.started


def _say(text: str) -> None:
    print(f"autopilot: {text}", file=sys.stderr, flush=True)
