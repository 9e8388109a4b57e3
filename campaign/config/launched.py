"""The node of a workload that is a command (`campaign.launch`): checked before any process is started."""

from __future__ import annotations

import dataclasses
import re
import shlex
from typing import Any

from campaign.config.explain import unknown_key
from campaign.config.schema import number, text
from campaign.errors import BadInput
from campaign.launch import IN_TURN, readings
from campaign.launch.command import CommandLine, Failed, flat
from campaign.secrecy import secret_name, secret_variable, secret_words

PREFIX = "campaign.launch."
CLASSES = ("campaign.launch.Script", *IN_TURN)
OWN_KEYS = ("_target_", "threads")
SHELL = ";&|<>"  # what would be an operator there
QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)  # and is none where it is quoted


def check_launched(node: dict[str, Any]) -> None:
    """Raises BadInput for a `campaign.launch` node that could not be started, or that would write a secret down: the
    ledger keeps it whole. A node of another class is none of this module's business."""
    target = node["_target_"]
    if not target.startswith(PREFIX):
        return
    if target not in CLASSES:
        raise BadInput(
            f"workload._target_ = {target!r} is not a way to launch a command: {' or '.join(CLASSES)}",
            remedy=f"_target_: {CLASSES[0]}",
        )
    watched = target in IN_TURN
    known = {field.name for field in dataclasses.fields(CommandLine)} | ({"steps", "tokens"} if watched else set())
    for name in node.keys() - known - set(OWN_KEYS):
        raise unknown_key(f"workload.{name}", [f"workload.{one}" for one in known])
    for name in ("flags", "environment", *(("steps",) if watched else ())):
        if not isinstance(node.get(name, {}), dict):
            raise BadInput(f"workload.{name} = {node[name]!r}: must be a mapping", remedy=f"workload.{name}.NAME=VALUE")
    _check_command(node)
    _check_secrets(node)
    if watched:
        tokens = node.get("tokens", 0)
        number(
            tokens, "workload.tokens", "tokens a step, 0 where nobody knows", isinstance(tokens, int) and tokens >= 0
        )
        try:
            readings.check(node.get("steps", {}))
        except Failed as failure:
            raise BadInput(
                failure.reason, remedy="correct workload.steps (docs/own.md has an example of each)"
            ) from None


def _check_command(node: dict[str, Any]) -> None:
    command = node.get("command")
    if isinstance(command, list):
        if not command or not all(isinstance(word, str) for word in command):
            raise BadInput(f"workload.command = {command!r}: a list of texts", remedy="command: [python, train.py]")
        return
    text(command, "workload.command")
    try:
        shlex.split(str(command))
        lexer = shlex.shlex(QUOTED.sub("_", str(command)), posix=True, punctuation_chars=SHELL)
        lexer.whitespace_split = True
        odd = [word for word in lexer if not set(word) - set(SHELL)]
    except ValueError as error:
        raise BadInput(f"workload.command = {command!r}: {error}", remedy="command: python train.py") from error
    if odd:
        raise BadInput(
            f"workload.command has {odd[0]!r}: no shell runs it, so that means nothing",
            remedy="put it into a script or into quotes, or ask for a shell: command: [bash, -c, '...']",
        )


def _check_secrets(node: dict[str, Any]) -> None:
    flags = [f"workload.flags.{name}" for name, _ in flat(node.get("flags", {})) if secret_name(name)]
    variables = [f"workload.environment.{name}" for name in node.get("environment", {}) if secret_variable(str(name))]
    command = node["command"]
    words = command if isinstance(command, list) else shlex.split(command)
    said = [f"workload.command's {name}" for name in secret_words(words)]
    if found := [*flags, *variables, *said]:
        raise BadInput(
            f"{found[0]} looks like a secret, and the ledger would keep it",
            remedy="set it in the shell's environment, which the command inherits and nothing records",
        )
