"""What `diagnose` and `compare` share: profiler files opened one after another, their options, and the project's claims
where there is a project."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from pathlib import Path

from campaign.errors import BadInput, NotAProject

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from campaign.diagnosis.question import Question
    from campaign.report.diagnosis_sections import Top
    from campaign.traces import KernelReport, Timeline

FORMS = ("md", "html")
LARGE_BYTES = 16 << 20  # from here on a person is told that a file is being read


def page_arguments(parser: argparse.ArgumentParser) -> None:
    """How the answer is shown."""
    parser.add_argument(
        "--range", metavar="NAME", help="only from the first to the last range of this name (NVTX, ...)"
    )
    parser.add_argument("--export", choices=FORMS, help="the answer as a page in this format")
    parser.add_argument("--out", metavar="FILE", help="write it to a file instead of stdout")
    parser.add_argument("--top", type=int, metavar="N", help="list so many of each (default: 10 families, 5 kernels)")


def check_page(given: argparse.Namespace) -> None:
    """Raises BadInput for options that do not go together or have no meaning."""
    if given.export and given.json:
        raise BadInput("--export and --json are two forms of one answer", remedy="leave one of them out")
    if given.out and not (given.export or given.json):
        raise BadInput("--out needs a format", remedy=f"--export md --out {given.out}")
    if given.top is not None and given.top < 1:
        raise BadInput(f"--top {given.top}: at least 1", remedy="--top 20")


def check_steps(steps: int | None, option: str) -> None:
    """Raises BadInput for a number of steps that no range can hold."""
    if steps is not None and steps < 1:
        raise BadInput(f"{option} {steps}: a range holds at least 1 whole step", remedy=f"{option} 10")


def top(given: argparse.Namespace) -> Top:
    from campaign.report.diagnosis_sections import Top

    return Top(given.top, given.top) if given.top else Top()


def target_ratio(text: str | None) -> float | None:
    """The speedup wanted: '2.35x' or '2.35'. Raises BadInput for what is not a ratio above 1."""
    if text is None:
        return None
    try:
        ratio = float(text.strip().lower().removesuffix("x"))
    except ValueError:
        ratio = math.nan
    if not (math.isfinite(ratio) and ratio > 1):
        raise BadInput(f"--target {text}: a ratio above 1, as 2.35x", remedy="--target 2.35x")
    return ratio


@contextmanager
def captures(paths: Sequence[str]) -> Iterator[list[Timeline | KernelReport]]:
    """The files, read in order; their disk space is given back at the end. Raises BadInput naming the file that cannot
    be read."""
    from campaign.traces import Timeline, open_profile

    found: list[Timeline | KernelReport] = []
    try:
        for path in paths:
            with _told(Path(path)):
                found.append(open_profile(Path(path)))
        yield found
    finally:
        for one in found:
            if isinstance(one, Timeline):
                one.close()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """On stderr, that a large file is being read: a line, or a spinner on a terminal."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # the reader says what is wrong with it
    if size < LARGE_BYTES:
        yield
        return
    from campaign import units
    from campaign.report.plain import plain

    said = f"reading {plain(str(path))} ({units.size(size)})"
    if not sys.stderr.isatty():
        print(said, file=sys.stderr, flush=True)
        yield
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    with console.status(said):
        yield


def question(
    given: argparse.Namespace, *, steps: int | None, target: float | None = None, workload: str | None = None
) -> Question:
    """What is asked, with the claims, family rules and floor of the project that this is, if it is one. Warnings go to
    stderr. Raises BadInput for a conf/diagnosis.yaml that cannot be read."""
    from campaign.diagnosis.question import Question
    from campaign.discovery import project_root

    try:
        root = project_root()
    except NotAProject:
        return Question(steps=steps, window=given.range, target=target)
    from campaign.config.claims import claims, family_rules

    ideas, warnings = claims(root, workload)
    for warning in warnings:
        print(warning, file=sys.stderr)
    floor, source = _floor(root, given.campaign)
    return Question(
        steps=steps,
        window=given.range,
        target=target,
        rules=family_rules(root),
        ideas=ideas,
        floor=floor,
        floor_source=source,
    )


def _floor(root: Path, campaign: str) -> tuple[float | None, str]:
    """d of the campaign's newest plan, and where it is written; None without a ledger or a plan. Raises BadInput for a
    name that is no campaign's, LedgerDamaged."""
    from campaign.discovery import campaign_folder

    if not (campaign_folder(root, campaign) / "ledger.jsonl").is_file():
        return None, ""
    from campaign.ledger import open_ledger

    with open_ledger(root, campaign, writable=False) as ledger:
        plans = list(ledger.store.entries({"registered"}, verify=False))
    if not plans:
        return None, ""
    return float(plans[-1].body["threshold"]), f"plan {plans[-1].id} of campaign {campaign}"
