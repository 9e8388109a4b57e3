"""What a run says while it runs: live lines on a terminal, one plain line an event in a pipe, one JSON object an event
on standard error where the answer is JSON (docs/events.md).

Nothing is written while a block is timed. There is no refresh thread: the display is redrawn between blocks alone, a
few times a round, because a thread of ours would run beside the step that is being timed.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from campaign import units
from campaign.records import Evidence, Plan, Round, Study, StudyEvidence
from campaign.report.announced import rule, subject
from campaign.report.json_text import as_line
from campaign.report.plain import plain
from campaign.report.standing import NOT_YET, Standing, outcome, rounds_left, rounds_text, standing, study_outcome

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["Progress", "rounds_text"]

REDRAWS_A_ROUND = 8


class Progress:
    """The voice of one run. `json` keeps standard output for the decision and sends events to standard error, one JSON
    object a line.

    `terminal` says whether a live line may be drawn (default: whether the stream is one). `clock` gives seconds.
    """

    def __init__(
        self,
        *,
        json: bool = False,
        output: TextIO | None = None,
        errors: TextIO | None = None,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._output = output or sys.stdout
        self._stream = (errors or sys.stderr) if json else self._output
        self._json = json
        self._terminal = not json and (self._stream.isatty() if terminal is None else terminal)
        self._clock = clock
        self._begun = clock()
        self._live: Live | None = None
        self._entered = False
        self._round_seconds: list[float] = []
        self._rounds_left = 0
        self._wanted = 0  # rounds of each group of a study, which asks for one more at a time
        self._faults: dict[str, tuple[str, ...]] = {}
        self._subject = ""  # the hypothesis, or the study
        self._now = ""
        self._place: dict[str, object] = {}  # the same for an event
        self._standing = ""
        self._seen: Standing | None = None
        self._redraw_every = 0

    def __enter__(self) -> Progress:
        self._entered = True
        self._start_live()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        self._stop_live()

    def waiting(self, text: str) -> None:
        """The device's lock is held by another campaign."""
        self._say(f"waiting: {text}", "waiting")

    def notice(self, text: str) -> None:
        """Something a reader of the log should know."""
        self._say(text)

    def start(self, plan: Plan, warnings: Sequence[str] = ()) -> None:
        """The plan is registered; what it will do at most, and what is wrong with the machine."""
        self._begin(plan.hypothesis.name)
        self._wanted = 0
        protocol = plan.protocol
        looks = ", ".join(map(str, protocol.looks))
        self._standing = f"{NOT_YET} (looks after {looks} rounds)"
        self._say(subject(plan))
        self._say(
            rule(plan),
            "plan",
            plan=plan.id,
            stack=plan.stack,
            looks=protocol.looks,
            confirm_rounds=protocol.confirm_rounds,
            accept_from=1 + plan.threshold,
        )
        self._warn(warnings)

    def study(self, study: Study, warnings: Sequence[str] = ()) -> None:
        """The study is registered; what it takes, and what is wrong with the machine."""
        self._begin(study.kind.replace("_", " "))
        self._wanted = study.rounds
        self._standing = f"{units.counted(study.rounds, 'round')} of each group, nothing is looked at on the way"
        self._rounds_left = study.rounds * len(study.groups)
        of = f" of {', '.join(study.subjects)}" if study.subjects else ""
        takes = rounds_text([len(group) for group in study.groups], study.rounds)
        self._say(f"{self._subject}{of}: {study.workload}, {study.device}, {takes}")
        self._say(
            f"study {study.id}: {study.protocol.pairs} pairs a round, {study.protocol.clock} clock, worth it from "
            f"{units.ratio(1 + study.threshold)}",
            "study",
            study=study.id,
            rounds=study.rounds * len(study.groups),
        )
        self._warn(warnings)

    def probing(self, text: str) -> None:
        """The untimed probe of the named arms begins."""
        self._event(f"probe, untimed: {text}", "probe")

    def round_started(self, stage: str, index: int, of: int) -> None:
        """Round `index` (0-based) of `stage` begins; `of` rounds are wanted before the next look. Where one has been
        looked at since the round before, it is said what was seen, since the rule went on."""
        # A replaced invalid round has an index past the rounds that are wanted.
        of = max(of, self._wanted)
        self._now = f"{stage} round {index + 1}" + (f" of {of}" if index < of else f" (for {of} valid ones)")
        self._place = {"stage": stage, "round": index + 1, "of": of}
        self._redraw_every = 0
        if self._seen:
            seen, self._seen = self._seen if stage == "screen" else replace(self._seen, next=0), None
            if seen.text() != self._standing and seen.looked:
                self._say(seen.text(), "look", **asdict(seen))
            self._standing = seen.text()
        self._event(self._now, "round", **self._place)

    def block(self, done: int, of: int, arm: str = "") -> None:
        """`done` of `of` blocks are timed, and it is the turn of `arm`, where that is known. Called between blocks;
        most calls only compare two numbers."""
        if self._live is None:
            return
        # Even strides redraw between two pairs, whose order is random, so that no arm is always next to a redraw.
        if not self._redraw_every:
            self._redraw_every = max(2, of // REDRAWS_A_ROUND // 2 * 2)
        if done % self._redraw_every == 0:
            self._draw(f"{self._now}: block {done} of {of}" + (f", {arm}'s turn" if arm else ""))

    def round_done(self, measured: Round, evidence: Evidence) -> None:
        """A round is over: its own ratio or why it does not count, and how long the rest may take."""
        for one in evidence.rounds:
            self._look_at(one, evidence.plan)
        valid = Counter(one.stage for one in evidence.rounds if not self._faults[one.id])
        self._rounds_left = rounds_left(evidence, valid)
        self._seen = standing(evidence, self._faults)
        self._round_over(measured, outcome(measured, evidence.plan, self._look_at(measured, evidence.plan)))

    def study_round_done(self, measured: Round, evidence: StudyEvidence) -> None:
        """A round of a study is over: whether it counts, and how long the rest may take."""
        study = evidence.study
        faults = {one.id: self._look_at(one, study) for one in evidence.rounds}
        valid = Counter(one.stage for one in evidence.rounds if not faults[one.id])
        wanted = [f"group-{place}" for place in range(1, len(study.groups) + 1)]
        self._rounds_left = sum(max(0, study.rounds - valid[stage]) for stage in wanted)
        self._round_over(measured, study_outcome(measured, study, faults[measured.id]))

    def decision(self, text: str) -> None:
        """The outcome, on standard output."""
        self._stop_live()
        _print(text, self._output)

    def finding(self, text: str) -> None:
        """What a study found, where more follows; with JSON on standard output it is one of the lines beside."""
        for line in text.splitlines():
            self._say(line, "finding")

    def _begin(self, subject: str) -> None:
        """Another plan or study of this run: the live lines are there again, and the times are its own."""
        self._subject, self._seen = subject, None
        self._start_live()
        self._round_seconds.clear()

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self._say(f"warning: {' '.join(warning.split())}", "warning")

    def _round_over(self, measured: Round, came_out: str) -> None:
        self._round_seconds.append(measured.wall_seconds)
        said = f"{self._now or measured.id}: {came_out}, took {units.seconds(measured.wall_seconds)}"
        faults = self._faults[measured.id]
        self._say(
            f"{said}; {self._time_left()}" if self._rounds_left else said,
            "round_over",
            **self._place,
            counted=not faults,
            faults=faults,
            seconds=measured.wall_seconds,
            seconds_left_at_most=self._seconds_left(),
        )

    def _look_at(self, one: Round, plan: Plan | Study) -> tuple[str, ...]:
        """The codes of the gates that a round fails. They never change, so each round is looked at once."""
        from campaign.stability import round_faults

        if one.id not in self._faults:
            self._faults[one.id] = tuple(fault.code for fault in round_faults(one, plan))
        return self._faults[one.id]

    def _time_left(self) -> str:
        left = self._seconds_left()
        return "time left not known yet" if left is None else f"up to {units.seconds(left)} left"

    def _seconds_left(self) -> float | None:
        return self._rounds_left * statistics.fmean(self._round_seconds) if self._round_seconds else None

    def _event(self, text: str, event: str, **facts: object) -> None:
        """What is going on now: the live line, or a line of its own."""
        if self._live is not None:
            self._draw(text)
        else:
            self._line(text, event, facts)

    def _say(self, text: str, event: str = "notice", **facts: object) -> None:
        """What stays on the screen."""
        if self._live is None:
            self._line(text, event, facts)
            return
        from rich.text import Text

        try:
            self._live.console.print(Text(plain(text)))
        except OSError:
            _mute(self._stream)

    def _line(self, text: str, event: str, facts: Mapping[str, object]) -> None:
        if self._json:
            said = {"schema": 1, "event": event, "subject": self._subject, **facts, "text": text}
            _print(as_line(said), self._stream)
        else:
            _print(plain(text), self._stream)

    def _draw(self, text: str) -> None:
        if self._live is None:
            return
        from rich.text import Text

        elapsed = units.seconds(self._clock() - self._begun)
        where = f"{self._subject}, {text}" if self._subject else text
        stands = f" | {self._standing}" if self._standing else ""
        lines = f"{where}\n{elapsed} so far, {self._time_left()}{stands}"
        try:
            self._live.update(Text(plain(lines), style="bold", no_wrap=True, overflow="ellipsis"), refresh=True)
        except OSError:
            _mute(self._stream)

    def _start_live(self) -> None:
        if not (self._entered and self._terminal) or self._live is not None:
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, force_terminal=True, highlight=False)
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stderr=False)
        self._live.start()

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _print(text: str, stream: TextIO) -> None:
    try:
        print(text, file=stream, flush=True)
    except OSError:
        _mute(stream)


def _mute(stream: TextIO) -> None:
    """Nobody reads any more (`| head`, a closed terminal). The measurement goes on, and the ledger has its outcome."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
