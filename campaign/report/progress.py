"""What a run says while it runs: a live line on a terminal, one plain line an event anywhere else.

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
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from campaign import units
from campaign.records import Evidence, Plan, Round, Study, StudyEvidence
from campaign.report.plain import plain

if TYPE_CHECKING:
    from rich.live import Live

REDRAWS_A_ROUND = 8


class Progress:
    """The voice of one run. `json` keeps standard output for the decision and sends the lines to standard error.

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
        self._terminal = not json and (self._stream.isatty() if terminal is None else terminal)
        self._clock = clock
        self._begun = clock()
        self._live: Live | None = None
        self._entered = False
        self._round_seconds: list[float] = []
        self._rounds_left = 0
        self._wanted = 0  # rounds of each group of a study, which asks for one more at a time
        self._faults: dict[str, tuple[str, ...]] = {}
        self._now = ""
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
        self._say(f"waiting: {text}")

    def notice(self, text: str) -> None:
        """Something a reader of the log should know."""
        self._say(text)

    def start(self, plan: Plan, warnings: Sequence[str] = ()) -> None:
        """The plan is registered; what it will do at most, and what is wrong with the machine."""
        self._begin()
        self._wanted = 0
        protocol = plan.protocol
        looks = ", ".join(map(str, protocol.looks))
        confirm = f", then {protocol.confirm_rounds} to confirm a gain"
        if plan.hypothesis.null or not protocol.decisive:
            confirm = ", which cannot accept"
        self._say(
            f"{plan.hypothesis.name} on {'+'.join(('root', *plan.stack))}: {plan.workload}, {plan.device}, predicted "
            f"{units.ratio(plan.hypothesis.predicted_ratio)}"
            + (f", needs {', '.join(plan.hypothesis.needs)}" if plan.hypothesis.needs else "")
        )
        self._say(
            f"plan {plan.id}: looks after {looks} rounds{confirm}; {protocol.pairs} pairs a round, {protocol.clock} "
            f"clock, alpha {plan.alpha:g}, accept from {units.ratio(1 + plan.threshold)}"
        )
        self._warn(warnings)

    def study(self, study: Study, warnings: Sequence[str] = ()) -> None:
        """The study is registered; what it takes, and what is wrong with the machine."""
        self._begin()
        self._wanted = study.rounds
        self._rounds_left = study.rounds * len(study.groups)
        of = f" of {', '.join(study.subjects)}" if study.subjects else ""
        takes = rounds_text([len(group) for group in study.groups], study.rounds)
        self._say(f"{study.kind.replace('_', ' ')}{of}: {study.workload}, {study.device}, {takes}")
        self._say(
            f"study {study.id}: {study.protocol.pairs} pairs a round, {study.protocol.clock} clock, worth it from "
            f"{units.ratio(1 + study.threshold)}"
        )
        self._warn(warnings)

    def probing(self, text: str) -> None:
        """The untimed probe of the named arms begins."""
        self._event(f"probe, untimed: {text}")

    def round_started(self, stage: str, index: int, of: int) -> None:
        """Round `index` (0-based) of `stage` begins; `of` rounds are wanted before the next look."""
        # A replaced invalid round has an index past the rounds that are wanted.
        of = max(of, self._wanted)
        self._now = f"{stage} round {index + 1}" + (f" of {of}" if index < of else f" (for {of} valid ones)")
        self._redraw_every = 0
        self._event(self._now)

    def block(self, done: int, of: int) -> None:
        """`done` of `of` blocks are timed. Called between blocks; most calls only compare two numbers."""
        if self._live is None:
            return
        # Even strides redraw between two pairs, whose order is random, so that no arm is always next to a redraw.
        if not self._redraw_every:
            self._redraw_every = max(2, of // REDRAWS_A_ROUND // 2 * 2)
        if done % self._redraw_every == 0:
            self._draw(f"{self._now}: block {done} of {of}")

    def round_done(self, measured: Round, evidence: Evidence) -> None:
        """A round is over: its own ratio or why it does not count, and how long the rest may take."""
        for one in evidence.rounds:
            self._look_at(one, evidence.plan)
        valid = Counter(one.stage for one in evidence.rounds if not self._faults[one.id])
        self._rounds_left = rounds_left(evidence, valid)
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
            self._say(line)

    def _begin(self) -> None:
        """Another plan or study of this run: the live line is there again, and the times are its own."""
        self._start_live()
        self._round_seconds.clear()

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self._say(f"warning: {' '.join(warning.split())}")

    def _round_over(self, measured: Round, came_out: str) -> None:
        self._round_seconds.append(measured.wall_seconds)
        said = f"{self._now or measured.id}: {came_out}, took {units.seconds(measured.wall_seconds)}"
        self._say(f"{said}; {self._time_left()}" if self._rounds_left else said)

    def _look_at(self, one: Round, plan: Plan | Study) -> tuple[str, ...]:
        """The codes of the gates that a round fails. They never change, so each round is looked at once."""
        from campaign.stability import round_faults

        if one.id not in self._faults:
            self._faults[one.id] = tuple(fault.code for fault in round_faults(one, plan))
        return self._faults[one.id]

    def _time_left(self) -> str:
        if not self._round_seconds:
            return "time left not known yet"
        left = self._rounds_left * statistics.fmean(self._round_seconds)
        return f"up to {units.seconds(left)} left"

    def _event(self, text: str) -> None:
        """What is going on now: the live line, or a line of its own."""
        if self._live is not None:
            self._draw(text)
        else:
            _print(text, self._stream)

    def _say(self, text: str) -> None:
        """What stays on the screen."""
        text = plain(text)
        if self._live is None:
            _print(text, self._stream)
            return
        from rich.text import Text

        try:
            self._live.console.print(Text(text))
        except OSError:
            _mute(self._stream)

    def _draw(self, text: str) -> None:
        if self._live is None:
            return
        from rich.text import Text

        elapsed = units.seconds(self._clock() - self._begun)
        line = Text(f"{text} | {elapsed} so far, {self._time_left()}", style="bold", no_wrap=True, overflow="ellipsis")
        try:
            self._live.update(line, refresh=True)
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


def rounds_left(evidence: Evidence, valid: Mapping[str, int]) -> int:
    """Rounds still needed if every look is taken and the gain is confirmed: a bound from above, not a forecast.
    A second confirmation counts once it has begun: few gains are suspect."""
    protocol = evidence.plan.protocol
    if valid["reconfirm"]:
        return max(0, protocol.confirm_rounds - valid["reconfirm"])
    screen = 0 if valid["confirm"] else max(0, protocol.looks[-1] - valid["screen"])
    confirms = protocol.decisive and not evidence.plan.hypothesis.null
    return screen + (max(0, protocol.confirm_rounds - valid["confirm"]) if confirms else 0)


def outcome(measured: Round, plan: Plan, faults: Sequence[str]) -> str:
    """'1.042x', the round's median paired ratio on the deciding clock, and which gates it failed."""
    from campaign.effects import ratio_of, round_logs

    if faults:
        return _not_counted(faults)
    log = round_logs([measured], plan.protocol.clock)["treatment"][0]
    return units.ratio(ratio_of(float(log)))


def study_outcome(measured: Round, study: Study, faults: Sequence[str]) -> str:
    """The same of a study's round: a ratio where it compares two arms, else only whether it counts."""
    from campaign.effects import ratio_of, round_logs

    if faults:
        return _not_counted(faults)
    others = [trial.arm for trial in measured.trials if trial.arm != study.base]
    if len(study.arms) != 2 or len(others) != 1:
        return f"counted, {len(measured.trials)} arms"
    return units.ratio(ratio_of(float(round_logs([measured], study.protocol.clock, study.base)[others[0]][0])))


def rounds_text(sizes: Sequence[int], rounds: int) -> str:
    """What `rounds` rounds of each group take; `sizes` are the arms of each: '6 rounds of 5 arms', '12 rounds: 6 of 8
    arms and 6 of 4'."""
    total = units.counted(rounds * len(sizes), "round")
    if len(set(sizes)) == 1:
        return f"{total} of {sizes[0]} arms"
    counts = sorted(Counter(sizes).items(), reverse=True)
    first, *rest = [f"{rounds * count} of {size}" for size, count in counts]
    return f"{total}: {' and '.join([f'{first} arms', *rest])}"


def _not_counted(faults: Sequence[str]) -> str:
    return f"not counted ({', '.join(faults)})"
