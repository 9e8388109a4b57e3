"""`campaign init`: a project around the training that is here, and the next three commands."""

from __future__ import annotations

import json
import os
from pathlib import Path

from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

SUMMARY = "lay down a project around your training script: conf/, runs/ and the next three commands"
MORE = """\
Finds the script that trains, how it is started and with which flags, its Python, its device, and whether it stops at
campaign's gates; says each in a line. Nothing is run, asked or overwritten, and a second time changes nothing. Where
no script trains it lays down train_example.py.

examples:
  campaign init                              here
  campaign init --script scripts/pretrain.py
  campaign init tuning                       conf/ and runs/ in tuning/, the training stays here: for a folder whose
                                             conf/config.yaml is another program's"""


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Where, and which script."""
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", default=".", help="where conf/ and runs/ go (default: here)"
    )
    parser.add_argument("--script", metavar="FILE", help="the script that trains, instead of the likeliest one")
    parser.add_argument("--here", action="store_true", help="although this is inside another campaign project")


def init(given: argparse.Namespace) -> int:
    """Look, choose, write, say; the exit code. Raises BadInput, with nothing overwritten."""
    from campaign.starting import choose, lay_down, refuse_where_it_cannot
    from campaign.starting.project import behind, next_commands

    here = Path.cwd().resolve()
    project = Path(os.path.normpath(here / given.folder))
    if project.exists() and not project.is_dir():
        raise BadInput(f"{project} is a file, and a project is a folder", remedy="campaign init DIR")
    refuse_where_it_cannot(project, here=given.here)
    choice = choose(here, project, given.script)
    laid = lay_down(choice)
    next_ = next_commands(choice, laid, here)
    late = behind(choice)
    if given.json:
        answer = {"schema": 1, "root": str(project), "script": choice.script, "way": choice.way, "found": choice.said,
                  "written": laid.written, "kept": laid.kept, "behind": late, "next": next_}  # fmt: skip
        print(json.dumps(answer))
        return EXIT_DECIDED
    lines = choice.said if laid.written else {"project": f"{project} is one already: nothing was changed"}
    lines = {**lines, "way": late} if late else lines
    for word, said in lines.items():
        print(f"{word:10} {said}")
    for word, names in (("laid down", laid.written), ("kept", laid.kept)):
        if names:
            print(f"{word:10} {', '.join(names)}")
    print("\nnext:")
    width = max(len(one["command"]) for one in next_)
    for one in next_:
        print(f"  {one['command']:{width}}  {one['what']}")
    return EXIT_DECIDED
