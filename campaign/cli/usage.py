"""`campaign --help`, from this text and the file names in `conf/`: nothing heavy is imported for it."""

from __future__ import annotations

from pathlib import Path

import campaign
from campaign.discovery import project_root
from campaign.errors import NotAProject

GROUPS = ("hypothesis", "workload", "protocol")

TEXT = """\
campaign: measure an edit of a training step against the stack accepted so far, and write the decision in a ledger.

Run (also `campaign run ...` and `python -m campaign ...`):
  campaign                                 an A/A null: what this machine can resolve
  campaign hypothesis=NAME                 one hypothesis, with the standard protocol
  campaign hypothesis=NAME protocol=quick  a first look; it can say `promising` or not, never accept
  campaign -m hypothesis=NAME,NAME         several, one after another, A/A nulls first; a summary at the end
  campaign -m 'hypothesis=glob(*)'         every one there is
  campaign -m hypothesis=register_cap register_cap.registers=8,12,16   one, over its own parameter
  campaign run --all --budget 2h           a whole campaign by itself: floor, every idea, retries, revalidation, page

Verbs (campaign VERB --help):
{verbs}

Groups (group=option):
{groups}

Common overrides (key=value):
  campaign.name=NAME      another ledger: runs/NAME/ledger.jsonl        (default)
  protocol.pairs=20       any protocol key, on any device
  workload.seed=1         any workload key, for control and treatment
  tracking=none           no MLflow mirror                              (mlflow)
  lease.wait_seconds=600  wait for another campaign on the device       (0)
  --json                  the outcome as JSON on stdout
  --cfg job --resolve     show the composed config instead of running it (after `campaign run`)

Exit codes:
  0    a decision was made, whatever it is
  2    bad input; nothing was started
  3    no decision: invalid or unavailable
  4    a sweep, or run --all, in which some hypothesis failed
  130  interrupted; the same command goes on from what was measured

campaign {version}"""


def usage() -> str:
    """The whole help text, with the options of this project when there is one here."""
    from campaign.cli.verbs import VERBS

    verbs = "\n".join(f"  {name:12} {verb.summary}" for name, verb in VERBS.items())
    groups = "\n".join(_listed(group) for group in GROUPS)
    return TEXT.format(verbs=verbs, groups=groups, version=campaign.__version__)


def _listed(group: str) -> str:
    """The group and its options, in lines of at most 100 characters."""
    import textwrap

    first = f"  {group:11} "
    return textwrap.fill(
        ", ".join(options(group)) or "-", 100, initial_indent=first, subsequent_indent=" " * len(first)
    )


def options(group: str) -> list[str]:
    """The options of a group here, by their file names; the packaged ones where this is no project."""
    packaged = Path(campaign.__file__).parent / "template" / "conf"
    try:
        folders = [project_root() / "conf", packaged]
    except NotAProject:
        folders = [packaged]
    return sorted({path.stem for folder in folders for path in (folder / group).glob("*.yaml")})
