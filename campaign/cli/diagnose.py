"""`campaign diagnose FILE ...`: where the step's time goes, from files that profilers wrote."""

from __future__ import annotations

import sys

from campaign.cli import captures
from campaign.cli.answer import write
from campaign.discovery import project_root
from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from campaign.diagnosis.found import Diagnosis
    from campaign.diagnosis.question import Question
    from campaign.traces import KernelReport, Timeline

SUMMARY = "where the step's time goes and what can be won, from a profiler's files"
MORE = """\
Files are recognised by content: torch.profiler (Kineto) traces, .json or .json.gz; Nsight Systems exports, .sqlite;
Nsight Compute tables, --page raw or details as CSV, and .ncu-rep (pip install 'campaign[ncu]'). Kernel reports are
joined to every trace given with them. Works outside a project; inside one the ideas in conf/hypothesis are ranked.

examples:
  campaign diagnose trace.json.gz
  campaign diagnose trace.sqlite --steps 10 --target 2.35x
  campaign diagnose trace.json.gz backward.csv            a trace with the counters of some of its kernels
  campaign diagnose trace.json.gz --export html --out trace.html

Exit codes: 0 there is a diagnosis; 2 a file cannot be read (says which, where, and what to do), or bad input."""


def diagnose_arguments(parser: argparse.ArgumentParser) -> None:
    """Which files, and what is asked of them."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="traces and kernel reports")
    parser.add_argument("--steps", type=int, metavar="N", help="how many whole steps the captured range holds")
    parser.add_argument("--target", metavar="RATIO", help="the speedup wanted, 2.35x: which families could give it")
    parser.add_argument("--workload", metavar="NAME", help="whose predictions count, in a project (its default one)")
    parser.add_argument("--record", action="store_true", help="keep it in the campaign's ledger, and in MLflow")
    captures.page_arguments(parser)


def diagnose(given: argparse.Namespace) -> int:
    """Read the files, diagnose each trace, answer; the exit code. Raises CampaignError."""
    if not given.files:
        raise BadInput("campaign diagnose: which file?", remedy="campaign diagnose FILE")
    captures.check_page(given)
    captures.check_steps(given.steps, "--steps")
    target = captures.target_ratio(given.target)
    root = project_root() if given.record else None
    asked = captures.question(given, steps=given.steps, target=target, workload=given.workload)
    with captures.captures(given.files) as found:
        diagnoses = _diagnosed(found, asked)
    if root is not None:
        _record(root, given, diagnoses)
    _answer(given, diagnoses)
    return EXIT_DECIDED


def _diagnosed(found: Sequence[Timeline | KernelReport], asked: Question) -> list[Diagnosis]:
    """One diagnosis a trace, each with every kernel report; one of the reports alone where there is no trace."""
    from campaign.diagnosis.whole import diagnose as diagnosis_of
    from campaign.traces import Timeline

    traces = [one for one in found if isinstance(one, Timeline)]
    reports = [one for one in found if not isinstance(one, Timeline)]
    made = [diagnosis_of(trace, reports, asked) for trace in traces] or [diagnosis_of(None, reports, asked)]
    return [_with_floor(one, asked) for one in made]


def _with_floor(made: Diagnosis, asked: Question) -> Diagnosis:
    """Says by which floor ideas were struck out: it is of this machine, and the profile may be of another."""
    if not made.ideas:
        return made
    from dataclasses import replace

    from campaign import units
    from campaign.traces.timeline import Notice

    if asked.floor is None:
        text = "no floor was measured here, so no idea is struck out for it: `campaign` (the A/A null) measures it"
    else:
        text = f"ideas are struck out below {units.ratio(1 + asked.floor)}, which is d of {asked.floor_source}"
    return replace(made, notices=(*made.notices, Notice("floor", text)))


def _answer(given: argparse.Namespace, diagnoses: Sequence[Diagnosis]) -> None:
    if given.json:
        from campaign.report.diagnosis_json import diagnosis_json

        write(diagnosis_json(diagnoses), given.out)
    elif given.export:
        from campaign.report.diagnosis_page import diagnosis_page

        write(diagnosis_page(diagnoses, given.export, captures.top(given)), given.out)
    else:
        from campaign.report.diagnosis_text import diagnosis_text

        write(diagnosis_text(diagnoses, terminal=sys.stdout.isatty(), top=captures.top(given)), None)


def _record(root: Path, given: argparse.Namespace, diagnoses: Sequence[Diagnosis]) -> None:
    """Write the diagnoses in the ledger of `--campaign`. Raises CampaignError."""
    import shlex

    from campaign.run.recorded import record

    options = [
        word
        for name in ("steps", "range", "target", "workload")
        if (value := getattr(given, name)) is not None
        for word in (f"--{name}", str(value))
    ]
    record(root, given.campaign, diagnoses, shlex.join(["campaign", "diagnose", *given.files, *options, "--record"]))
