"""`campaign --help`, from this text, the verbs and the file names in `conf/`: one screen, and nothing heavy is imported
for it."""

from __future__ import annotations

import campaign
from campaign.discovery import config_folders, project_root, shared_options
from campaign.errors import NotAProject

GROUPS = ("hypothesis", "workload", "protocol")
LOOP = ("init", "doctor", "diagnose", "run", "ledger", "revalidate", "report")
COLUMNS = 100
INDENT = " " * 15
MOST_LINES_A_GROUP = 3

TEXT = """\
campaign {version}: measure edits of a training step, each on the stack accepted so far, and decide.

The loop (campaign VERB --help says more):
{loop}

Beside it:
{others}

Groups (group=option):
{groups}

Keys (key=value): campaign.name=NAME for another ledger, protocol.pairs=20, tracking=none,
  lease.wait_seconds=600; campaign run --help has every one; --json with any verb
Exit codes: 0 decided, 2 bad input, 3 no decision, 4 a sweep in which some failed,
  5 doctor: doubtful, 130 interrupted (the same command goes on)"""

RUN = """\
campaign hypothesis=NAME: one edit to its verdict; protocol=quick: a first look
campaign: the A/A null, which says what this machine can resolve
campaign -m hypothesis=NAME,NAME or 'hypothesis=glob(*)': one after another
campaign -m hypothesis=NAME NAME.PARAMETER=8,12: one, over its own parameter
campaign run --all --budget 2h: the whole loop by itself, up to its page"""


def usage() -> str:
    """The whole help text, with the options of this project when there is one here. A verb has its line by being in
    `VERBS`."""
    from campaign.cli.verbs import VERBS

    lines = {name: _row(name, _clauses(verb.summary)) for name, verb in VERBS.items()}
    lines["run"] = "\n".join(_row("" if place else "run", line) for place, line in enumerate(RUN.splitlines()))
    return TEXT.format(
        loop="\n".join(lines.pop(name) for name in LOOP if name in lines),
        others="\n".join(lines.values()),
        groups="\n".join(_listed(group) for group in GROUPS),
        version=campaign.__version__,
    )


def _row(name: str, text: str) -> str:
    return f"  {name:12} {text}"


def _clauses(text: str) -> str:
    """As many whole clauses of a verb's summary as fit into its line."""
    room = COLUMNS - len(INDENT)
    while len(text) > room:
        ends = [text.rfind(mark, 0, room) for mark in (", ", ": ", "; ", "? ")]
        if (end := max(ends)) <= 0:
            return text[: room - 1].rsplit(" ", 1)[0]
        text = text[: end + 1].rstrip(",:;")
    return text


def _listed(group: str) -> str:
    """The group and its options in lines of at most 100 characters; what there is no room for is counted."""
    import textwrap

    names = options(group)
    lines = textwrap.wrap(
        ", ".join(names) or "-",
        COLUMNS,
        initial_indent=_row(group, ""),
        subsequent_indent=INDENT,
        break_on_hyphens=False,
    )
    if len(lines) > MOST_LINES_A_GROUP:
        shown = lines[: MOST_LINES_A_GROUP - 1]
        left = len(names) - sum(len(line[len(INDENT) :].rstrip(",").split(", ")) for line in shown)
        lines = [*shown, f"{INDENT}and {left} more in conf/{group}/"]
    return "\n".join(lines)


def options(group: str) -> list[str]:
    """The options of a group here, by their file names; where this is no project, those that fit any workload."""
    try:
        folders = config_folders(project_root() / "conf")
    except NotAProject:
        folders = []
    found = {path.stem for folder in folders for path in (folder / group).glob("*.yaml")}
    return sorted(found | shared_options(group).keys())
