"""The parameters of a hypothesis: the top-level node of its file that has its own name.

    # conf/hypothesis/register_cap.yaml
    register_cap: {registers: 12}

Its edit refers to them (`${register_cap.registers}`), the command line sets and sweeps them
(`-m hypothesis=register_cap register_cap.registers=8,12,16`). A mapping inside the node is a table for such references,
not a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from campaign.config.compose import TOP, Composer, group_choices
from campaign.config.edits import parse
from campaign.config.explain import unknown_key
from campaign.config.workload import same_shape
from campaign.errors import BadInput

PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
WORDS = ("null", "true", "false", "nan", "inf")


def parameters_for(
    values: dict[str, Any], choice: str | None, overrides: Sequence[str], composer: Composer
) -> dict[str, Any]:
    """The chosen hypothesis's parameters by name, as composed.

    Raises BadInput for a node of another hypothesis, a parameter that the file does not declare, or one of another
    kind; UnknownName for a top-level key that nobody has.
    """
    for name in values:
        if name in TOP or name == choice:
            continue
        if name in composer.options("hypothesis"):
            raise BadInput(
                f"the config holds parameters of {name}, and hypothesis={choice} is chosen: a hypothesis has its "
                "parameters under its own name",
                remedy=f"rename the node {name} to {choice} in conf/hypothesis/{choice}.yaml",
            )
        raise unknown_key(name, [*TOP, *composer.known_keys(group_choices(overrides))])
    if choice is None or choice in TOP or choice not in values:
        return {}
    node = values[choice]
    if not isinstance(node, dict) or not node:
        raise BadInput(
            f"{choice} = {node!r}: the parameters of a hypothesis are a mapping of names to values",
            remedy=f"{choice}: {{NAME: VALUE}} in conf/hypothesis/{choice}.yaml",
        )
    same_shape(node, composer.compose(group_choices(overrides)).values.get(choice, {}), path=choice)
    return {str(name): value for name, value in node.items() if not isinstance(value, dict)}


def check_parameter(text: str, key: str, chosen: Sequence[str], composer: Composer) -> None:
    """Raises BadInput for an override of a parameter whose hypothesis is not the one that is chosen."""
    owner = key.split(".", 1)[0]
    if owner in TOP or owner not in composer.options("hypothesis"):
        return
    if "." not in key:
        raise BadInput(
            f"{text!r}: the parameters of a hypothesis are a mapping, set one by one", remedy=f"{owner}.NAME=VALUE"
        )
    stranger = next((name for name in chosen if name != owner), None)
    if stranger is not None:
        sweep = "-m " if parse(text).is_sweep_override() else ""
        raise BadInput(
            f"{text!r} sets a parameter of hypothesis {owner}, and hypothesis={stranger} is chosen",
            remedy=f"{sweep}hypothesis={owner} {text}",
        )
    if owner not in composer.compose([f"hypothesis={owner}"]).values:
        raise BadInput(
            f"{text!r}: hypothesis {owner} has no parameters",
            remedy=f"campaign run hypothesis={owner} --cfg job    (shows what can be set)",
        )


def spelled(value: Any) -> str:
    """A value in the spelling of Hydra's overrides."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(spelled(item) for item in value)}]"
    text = str(value)
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
