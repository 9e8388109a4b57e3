"""`campaign completion SHELL`: a script for bash, zsh or fish that completes verbs, options, groups and their names.

The script is a file of `campaign/cli/shells/` with the verbs and their options filled in. The names of a project
(hypotheses, workloads, protocols, campaigns) are looked up by the shell itself in `conf/` and `runs/` when Tab is
pressed, so that no Python starts for it.
"""

from __future__ import annotations

from pathlib import Path

import campaign
from campaign.discovery import packaged_conf
from campaign.errors import EXIT_DECIDED

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SUMMARY = "a script for bash, zsh or fish that completes this command line"
MORE = """\
examples:
  eval "$(campaign completion bash)"                                       in ~/.bashrc
  eval "$(campaign completion zsh)"                                        in ~/.zshrc, after compinit
  campaign completion fish > ~/.config/fish/completions/campaign.fish

Make it again after an upgrade; files added to conf/ and campaigns under runs/ are seen at once."""
SHELLS = Path(__file__).parent / "shells"
# `run` is no verb of the table: its words go to Hydra, and with --all to the autopilot.
RUN = {"--all": "", "--only": "hypothesis", "--budget": "none", "--apply": "", "--cfg": "job", "--resolve": "",
       "--multirun": "", "-m": "", "--json": "", "--help": ""}  # fmt: skip
KEYS = (
    "hypothesis= workload= protocol= campaign.name= tracking= lease.wait_seconds= protocol.pairs= protocol.min_effect="
)
GROUPS = ("hypothesis", "workload", "protocol")
# What the value of an option is, where argparse does not list the choices: a config group, or the campaigns of runs/.
NAMED = {"--campaign": "campaigns", "--hypothesis": "hypothesis", "--revert": "hypothesis", "--accept": "hypothesis",
         "--reject": "hypothesis", "--workload": "workload"}  # fmt: skip
FILES = "files"
NOTHING = "none"


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=shells(), help="which shell's script")


def shells() -> list[str]:
    """The shells that there is a script for."""
    return sorted(path.suffix[1:] for path in SHELLS.glob("campaign.*"))


def completion(given: argparse.Namespace) -> int:
    text = script(given.shell)
    if given.json:
        import json

        text = json.dumps({"schema": 1, "shell": given.shell, "script": text})
    print(text)
    return EXIT_DECIDED


def script(shell: str) -> str:
    """The whole script of a shell, with this version's verbs and options."""
    from campaign.cli.verbs import VERBS

    summaries = {"run": "measure one hypothesis, several (-m), or all (--all)"}
    summaries |= {name: verb.summary for name, verb in VERBS.items()}
    table = {"run": RUN, **{name: options_of(name) for name in VERBS}}
    words = {"run": "overrides", **{name: words_of(name) for name in VERBS}}
    filled = {
        "VERSION": campaign.__version__,
        "PACKAGED": str(packaged_conf() or ""),
        "KEYS": KEYS,
        "VERBS": " ".join(table),
        "SUMMARIES": "\n".join(_summary(shell, name, text) for name, text in summaries.items()),
        "OPTIONS": "\n".join(f"    {name}) echo '{' '.join(options)}' ;;" for name, options in table.items()),
        "VALUES": "\n".join(_values(table)),
        "WORDS": "\n".join(f"    {name}) echo '{kind}' ;;" for name, kind in words.items()),
    }
    if shell == "fish":
        filled["OPTIONS"] = "\n".join(_fish_options(table))
        filled["WORDS"] = "\n".join(
            f"complete -c campaign -n '__campaign_verb {name}' -a '(__campaign_words {kind})'"
            for name, kind in words.items()
            if kind not in (NOTHING, FILES)
        ) + "".join(
            f"\ncomplete -c campaign -n '__campaign_verb {name}' -F" for name, kind in words.items() if kind == FILES
        )
    text = (SHELLS / f"campaign.{shell}").read_text()
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text.rstrip("\n")


def options_of(verb: str) -> dict[str, str]:
    """Each option of a verb with what its value is: '' for a flag, choices separated by spaces, a config group,
    `campaigns`, `files`, or `none` for anything else."""
    from campaign.cli.verbs import parser_of

    found = {}
    for action in parser_of(verb)._actions:
        for name in action.option_strings:
            if name.startswith("--"):
                found[name] = _value(name, action)
    return found


def _value(name: str, action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices:
        return " ".join(map(str, action.choices))
    if name in NAMED:
        return NAMED[name]
    return FILES if "FILE" in str(action.metavar) or "DIR" in str(action.metavar) else NOTHING


def words_of(verb: str) -> str:
    """What the words of a verb are that are no options, by its help: `overrides`, `hypothesis`, choices, `files` or
    `none`."""
    from campaign.cli.verbs import parser_of

    for action in parser_of(verb)._actions:
        if not action.option_strings:
            if action.choices:
                return " ".join(map(str, action.choices))
            said = f"{action.dest} {action.metavar}".lower()
            marks = {"name": "hypothesis", "override": "overrides", "file": FILES, "trace": FILES}
            return next((kind for mark, kind in marks.items() if mark in said), NOTHING)
    return NOTHING


def _summary(shell: str, name: str, text: str) -> str:
    text = text.replace("'", r"\'" if shell == "fish" else r"'\''")  # within single quotes
    if shell == "fish":
        return f"complete -c campaign -n __campaign_first -a {name} -d '{text}'"
    return f"    '{name}:{text.replace(':', ';')}'"


def _values(table: dict[str, dict[str, str]]) -> Iterator[str]:
    for verb, options in table.items():
        for name, value in options.items():
            if value:
                yield f"    '{verb} {name}') echo '{value}' ;;"


def _fish_options(table: dict[str, dict[str, str]]) -> Iterator[str]:
    for verb, options in table.items():
        for name, value in options.items():
            flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            takes = {"": "", FILES: " -r -F", NOTHING: " -x"}.get(value, f" -x -a '(__campaign_words {value})'")
            yield f"complete -c campaign -n '__campaign_verb {verb}' {flag}{takes}"
