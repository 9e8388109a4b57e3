"""One run, a sweep of runs one after another, or a search over a hypothesis's parameters."""

from __future__ import annotations

import logging
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from campaign import verdicts
from campaign.cli import show_error
from campaign.config import Job, Search, fitting, is_search, jobs, read_line, search_for
from campaign.discovery import project_root
from campaign.errors import EXIT_DECIDED, EXIT_INTERRUPTED, EXIT_NO_DECISION, EXIT_SWEEP_FAILED, CampaignError
from campaign.ledger import open_ledger
from campaign.reading import label
from campaign.records import ACCEPT, INVALID, UNAVAILABLE
from campaign.report.listing import row
from campaign.report.sweep import (
    FAULT,
    INTERRUPTED,
    NONE,
    NOT_STARTED,
    NOT_TRIED,
    REFUSED,
    Ended,
    summary,
    summary_json,
)

if TYPE_CHECKING:
    from campaign.run.sweep import Sweep

Main = Callable[[Job, Callable[[str], None]], int]  # `campaign.run.main`
# What a fault in our own code raises. In a sweep it is shown in full and the next hypothesis goes on, because one
# bug must not cost the rest of a night.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
          ValueError)  # fmt: skip


def run(argv: Sequence[str]) -> int:
    """Measure what the overrides ask for; the exit code. Every job is composed and checked before the first starts.
    Of hypotheses named by a pattern those that do not fit the workload are refused, and the others run.

    Raises CampaignError.
    """
    line = read_line(argv)
    if is_search(line):
        return _searched(search_for(project_root(), line), line.overrides)
    found, misfits = fitting(project_root(), argv) if line.sweep else (jobs(project_root(), argv), {})
    if not found:
        return EXIT_DECIDED  # Hydra showed help or the config
    from campaign.run import main

    with terminated_like_interrupted():
        if not line.sweep and len(found) == 1:  # the config itself may ask for a sweep
            return main(found[0])
        from campaign.run.sweep import JOBS, begun

        with begun(JOBS, found, line.overrides) as entered:
            refused = [Ended(name, why.exit_code, ended=REFUSED, why=why.message) for name, why in misfits.items()]
            code = sweep(found, main, entered, refused)
            if code != EXIT_INTERRUPTED:
                for one in entered.values():
                    one.end()
        return code


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM (timeout, Slurm, systemd) and SIGHUP (a terminal or connection that closed) end a run as Ctrl-C does:
    trials killed, temporary folders and worktrees removed. A SIGHUP that nohup had ignored stays ignored."""
    ending = [signal.SIGTERM, *([signal.SIGHUP] if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL else [])]
    before = {number: signal.signal(number, signal.default_int_handler) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def sweep(
    found: Sequence[Job], main: Main, entered: Mapping[str, Sweep] | None = None, refused: Sequence[Ended] = ()
) -> int:
    """Run every job in order: 0 when each got its decision, 4 when some did not, 130 at once on an interrupt. Ends
    with a summary in which every job has its line, the refused and the not started ones too.

    `entered` is the sweep in the ledger of each campaign; a job that it has a decision of is not run. `refused` are
    jobs that could not be composed.
    """
    for one in refused:
        print(f"refused: {one.label}: {one.why}", file=sys.stderr)
    ended: list[Ended] = []
    for place, job in enumerate(found, 1):
        in_ledger = entered[job.campaign] if entered else None
        print(f"[{place}/{len(found)}] {_label(job)}", file=sys.stderr)
        ended.append((in_ledger and before(job, in_ledger)) or _taken(job, ended) or outcome(job, main, in_ledger))
        if ended[-1].before:
            print("  decided before the interruption", file=sys.stderr)
        if ended[-1].code == EXIT_INTERRUPTED:
            break
    rest = [Ended(_label(job), None, ended=NOT_STARTED) for job in found[len(ended) :]]
    show([*ended, *rest, *refused], as_json=any(job.json for job in found))
    if ended and ended[-1].code == EXIT_INTERRUPTED:
        name = ended[-1].label
        said = f"interrupted in {name}, number {len(ended)} of {len(found)}; {len(rest)} were not started"
        print(said, file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_DECIDED if all(job.code in (EXIT_DECIDED, None) for job in (*ended, *refused)) else EXIT_SWEEP_FAILED


def _taken(job: Job, ended: Sequence[Ended]) -> Ended | None:
    """That another value of the job's hypothesis joined the stack in this sweep, after which no other value of it can
    be an edit of head; None where none did."""
    name = job.hypothesis.name
    for one in ended:
        if one.row and one.row["hypothesis"] == name and one.row["verdict"] == ACCEPT and not one.row["revoked"]:
            why = f"{one.label} was accepted before it; compare all values: hydra/sweeper=optuna, or --revert {name}"
            return Ended(_label(job), None, ended=NOT_TRIED, why=why)
    return None


def show(jobs: Sequence[Ended], *, as_json: bool) -> None:
    """The summary as a table, and as JSON on standard output where that was asked for."""
    print(f"\n{summary(jobs)}", file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(summary_json(jobs), flush=True)


def before(job: Job, in_ledger: Sweep) -> Ended | None:
    """What became of a job before its sweep was interrupted; None where it is to be run, which is said where it was
    decided under other conditions."""
    recalled = in_ledger.recall(job)
    if not recalled.rows:
        if recalled.other:
            said = f"decided before the interruption, {recalled.other}: measured again"
            print(f"  {_label(job)}: {said}", file=sys.stderr)
        return None
    note = f"decided {recalled.other}; it is in the stack and stands" if recalled.other else ""
    return replace(recall(job, recalled.rows), note=note)


def recall(job: Job, rows: Sequence[Mapping[str, Any]]) -> Ended:
    """A job that was decided before its sweep was interrupted."""
    undecided = rows[-1]["verdict"]["verdict"] in (INVALID, UNAVAILABLE)
    return replace(_of(job, EXIT_NO_DECISION if undecided else EXIT_DECIDED, rows), before=True)


def outcome(
    job: Job, main: Main, in_ledger: Sweep | None = None, *, through: tuple[type[CampaignError], ...] = ()
) -> Ended:
    """Run one job of a sweep; what ends it alone, ends it alone. Its decisions are those that this run made, never what
    another process decided on the same meanwhile. Raises the errors named in `through`."""
    ids, ended, why = [], "", ""

    def note(id: str) -> None:
        ids.append(id)
        if in_ledger:
            in_ledger.made(id)

    try:
        code = main(job, note)
    except through:
        raise
    except CampaignError as error:
        show_error(error, as_json=job.json)
        # A warning (exit code 0) is no failure of the hypothesis.
        code, ended, why = error.exit_code, REFUSED, error.message
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else EXIT_SWEEP_FAILED
        ended, why = FAULT, f"the run ended with SystemExit({left.code})"
    except FAULTS as fault:
        traceback.print_exc()
        code, ended, why = EXIT_SWEEP_FAILED, FAULT, f"{type(fault).__name__}: {fault}"
    except KeyboardInterrupt:
        code, ended = EXIT_INTERRUPTED, INTERRUPTED
    made = _decisions(job, ids)
    if in_ledger:
        in_ledger.take(made)
    if made:
        found = _of(job, code, made)
        # Refused after its decisions came too late: the tests were spent, and none of them is its result.
        refused = ended == REFUSED and made[-1]["verdict"]["reason"] == verdicts.STALE
        return replace(found, row=None, ended=ended, why=why) if refused else found
    return Ended(_label(job), code, ended=ended or (INTERRUPTED if code == EXIT_INTERRUPTED else NONE), why=why)


def _of(job: Job, code: int, made: Sequence[Mapping[str, Any]]) -> Ended:
    """The decisions on one job, of which the last stands."""
    tests = [one for one in made if one["verdict"]["look"] > 0 and job.protocol.decisive and not job.hypothesis.null]
    alphas = [job.protocol.alpha / 2 ** (one["attempt"] - 1) for one in tests]
    expected = sum(alphas) * job.protocol.confirm_alpha
    last = made[-1]
    return Ended(_label(job), code, row(last, last["revoked"]), tests=len(tests), false_accepts=expected)


def _decisions(job: Job, ids: Collection[str]) -> list[dict[str, Any]]:
    """These decisions of the job's ledger, in order; none where it cannot be read, which the run itself says with more
    words."""
    if not ids:
        return []
    try:
        with open_ledger(job.root, job.campaign, writable=False) as ledger:
            return [one for one in ledger.decision_rows() if one["id"] in ids]
    except CampaignError:
        return []


def _label(job: Job) -> str:
    """The hypothesis with its parameters: 'register_cap registers=8'."""
    return label(job.hypothesis.name, job.command)


def _searched(search: Search, words: Sequence[str]) -> int:
    """First looks at the values that Optuna asks for, then the best of them decided by the protocol that was asked
    for; the exit code."""
    from campaign.run import main
    from campaign.run.sweep import SEARCH, begun

    with terminated_like_interrupted(), _little_logged(), begun(SEARCH, [search.asked], words) as entered:
        in_ledger = entered[search.asked.campaign]
        looked: dict[tuple[str, ...], Ended] = {}

        def look(overrides: list[str]) -> float | None:
            if (values := tuple(overrides)) not in looked:
                looked[values] = _looked(search, overrides, in_ledger, main, len(looked) + 1)
            found = looked[values]
            if found.code == EXIT_INTERRUPTED:
                raise KeyboardInterrupt
            return found.row["ratio"] if found.row else None

        try:
            search.each(look)
            ended = [*looked.values(), *_best_decided(search, looked, in_ledger, main)]
        except KeyboardInterrupt:
            show(list(looked.values()), as_json=search.asked.json)
            print("interrupted; the same command goes on with the search", file=sys.stderr)
            return EXIT_INTERRUPTED
        show(ended, as_json=search.asked.json)
        if ended and ended[-1].code == EXIT_INTERRUPTED:
            return EXIT_INTERRUPTED
        in_ledger.end()
    return EXIT_DECIDED if all(job.code == EXIT_DECIDED for job in ended) else EXIT_SWEEP_FAILED


@contextmanager
def _little_logged() -> Iterator[None]:
    """Each look has a line of ours; Optuna and its store would log theirs beside."""
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _looked(search: Search, overrides: list[str], in_ledger: Sweep, main: Main, number: int) -> Ended:
    try:
        job = search.job(overrides)
    except CampaignError as error:
        show_error(error, as_json=search.asked.json)
        return Ended(" ".join(overrides), error.exit_code, ended=REFUSED, why=error.message)
    print(f"[look {number}] {_label(job)}", file=sys.stderr)
    return before(job, in_ledger) or outcome(job, main, in_ledger)


def _best_decided(
    search: Search, looked: Mapping[tuple[str, ...], Ended], in_ledger: Sweep, main: Main
) -> Iterator[Ended]:
    """The decision on the best value, where its look was promising and a decision was asked for."""
    promising = [
        (one.row["ratio"], values) for values, one in looked.items() if one.row and one.row["reason"] == "promising"
    ]
    if not promising:
        print("no value looked promising: there is nothing to decide", file=sys.stderr)
        return
    job = search.decisive(max(promising)[1])
    print(f"best look: {_label(job)}, {max(promising)[0]:.3f}x, too good as the best of many looks", file=sys.stderr)
    if job.protocol.decisive:
        yield before(job, in_ledger) or outcome(job, main, in_ledger)
    else:
        print(f"  decide it: {job.command.replace(' protocol=quick', '')}", file=sys.stderr)
