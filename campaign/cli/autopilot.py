"""`campaign run --all`: a whole campaign by itself, from the floor to the page.

The floor (an A/A null, unless one of here and now is in the ledger), every idea in order of its predicted ceiling on
the stack of its turn, those that lost again where their neighbours changed, revalidation, and the page. It stops by
itself and says why. What it does next is decided in `run.autopilot` from the ledger alone.
"""

from __future__ import annotations

import argparse
import re
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
from campaign.run.declare import check_place
from campaign.verdicts import STALE

if TYPE_CHECKING:
    from campaign.run.autopilot import Idea, Survey
    from campaign.run.sweep import Sweep

ENDS_ALL = (LeaseHeld, LedgerDamaged, LedgerUnwritable)  # what the next idea would meet as well
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
REVALIDATION = "revalidation"
MORE = """\
examples:
  campaign run --all
  campaign run --all --budget 2h
  campaign run --all --only prenorm_fusion,recompute_trade workload.seed=1
  campaign run --all --only LIST          the hypotheses listed in conf/ideas/LIST.yaml

Ends with revalidation and the page runs/NAME/campaign.md. Interrupted or killed, the same command goes on.
Exit codes: 0 every idea that was started got its decision; 2 bad input; 4 some had none; 130 interrupted."""


def run_all(words: Sequence[str]) -> int:
    """Go through every idea; the exit code. Raises CampaignError."""
    parser = _parser()
    given = parser.parse_intermixed_args(list(words))
    if given.help:
        print(parser.format_help().rstrip())
        return EXIT_DECIDED
    budget = None if given.budget is None else seconds_of(given.budget)
    only = [name for name in (given.only or "").split(",") if name]
    null, found = ideas(project_root(), given.overrides, only, json=given.json)
    if not null.protocol.decisive:
        raise BadInput(f"protocol={null.protocol.name} can accept nothing", remedy="protocol=standard")
    from campaign.run.autopilot import ordered
    from campaign.run.sweep import AUTOPILOT, begun

    asked = [*given.overrides, f"--only={','.join(only)}", f"--budget={budget}", f"--apply={given.apply}"]
    with running.terminated_like_interrupted(), begun(AUTOPILOT, [null], asked) as entered:
        pilot = Pilot(null, ordered(found), entered[null.campaign], budget, given.apply)
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
    parser.add_argument("--budget", metavar="2h", help="stop in time to revalidate within this (90s, 30m, 1h30m)")
    parser.add_argument("--apply", action="store_true", help="take out of the stack what no longer pays in the end")
    parser.add_argument("--json", action="store_true", help="the outcomes as JSON lines on stdout")
    return parser


def seconds_of(budget: str) -> float:
    """'2h', '1h30m', '90s', '0.5h' or plain seconds as seconds. Raises BadInput."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", budget)
    if not parts or "".join(number + unit for number, unit in parts) != budget:
        raise BadInput(f"--budget {budget!r}: a time is hours, minutes or seconds", remedy="--budget 1h30m")
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if seconds <= 0:
        raise BadInput(f"--budget {budget!r}: nothing can be measured in no time", remedy="--budget 1h30m")
    return seconds


class Pilot:
    """One autopilot at work. `ended` has a line for every try, as in a sweep."""

    def __init__(self, null: Job, ideas: list[Idea], sweep: Sweep, budget_seconds: float | None, apply: bool) -> None:
        from campaign.run.autopilot import spent_seconds, study_of

        self.null, self.ideas, self.sweep, self.budget, self.apply = null, ideas, sweep, budget_seconds, apply
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
            struck=dict(self.survey.struck) if self.survey else {},
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
            for job in (self.null, *(idea.job for idea in self.ideas)):
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
        elif not any(one.label.split()[0] == name for one in self.ended):
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
        from campaign.run.autopilot import BUDGET, accepted_now, stopped, survey, thresholds

        d = thresholds(self.null, self.ideas, self.ledger)
        while True:
            accepted, rows = accepted_now(self.ledger), self.ledger.decision_rows()
            found = survey(self.ideas, rows, accepted, d, self.sweep.line, self.left_alone)
            self._tell(found)
            choice = [(idea, "") for idea in found.untried] or list(found.again)
            if not choice:
                self.stopped, self.why = stopped(found, d)
                return None
            if why := self._too_late(len(accepted)):
                self.stopped, self.why = BUDGET, why
                self.not_tried = tuple(idea.name for idea, _ in choice)
                return None
            idea, change = choice[0]
            on = "+".join(("root", *(one.name for one in accepted)))
            _say(f"{f'again ({change})' if change else 'try'}: {idea.name}, {idea.ceiling_text}, on {on}")
            ended = self._outcome(idea.job)
            if ended.code == EXIT_INTERRUPTED:
                return EXIT_INTERRUPTED
            if ended.row is None or ended.row["reason"] == STALE:
                self.left_alone.add(idea.name)

    def _tell(self, found: Survey) -> None:
        """What is struck out, each reason once."""
        told = self.survey.struck if self.survey else {}
        for name, why in found.struck.items():
            if told.get(name) != why:
                _say(f"not tried: {name}: {why}")
        self.survey = found

    def _too_late(self, edits: int) -> str:
        """Why the next try would not leave the time to revalidate; empty where it does."""
        from campaign.run.autopilot import arm_seconds, idea_seconds, revalidation_seconds

        if self.budget is None:
            return ""
        spent, next_one = self._spent(), idea_seconds(self.ledger.decision_rows())
        kept = revalidation_seconds(self.study.protocol, edits + 1, arm_seconds(self.ledger))
        if spent + next_one + kept <= self.budget:
            return ""
        return (
            f"the budget of {units.seconds(self.budget)} is spent: {units.seconds(spent)} so far, a try takes about "
            f"{units.seconds(next_one)}, and {units.seconds(kept)} are kept back to revalidate"
        )

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
