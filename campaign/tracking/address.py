"""Where a campaign is mirrored, found without Hydra: what was typed, the newest run's command, or conf/config.yaml."""

from __future__ import annotations

import shlex
from pathlib import Path

from campaign.destination import EMBEDDED, NONE, address, destination_of
from campaign.errors import BadInput
from campaign.tracking.decided import Decided


def chosen(root: Path, ledger: Decided, typed: str | None = None) -> str:
    """Where `sync` writes and `ui` looks: the address typed, else the one of the campaign's newest run, else that of
    the project; the project's own store where they say `none`, since MLflow is asked for. Raises BadInput."""
    if typed is not None:
        return EMBEDDED if typed == EMBEDDED else address(typed)
    found = of_campaign(root, ledger)
    return EMBEDDED if found == NONE else found


def of_campaign(root: Path, ledger: Decided) -> str:
    """Where the campaign's newest run was told to mirror, else where the project says. Raises BadInput."""
    plans = ledger.plans()
    found = of_command(plans[-1].command) if plans else None
    return declared(root) if found is None else found


def of_command(command: str) -> str | None:
    """The destination that a run's command names; None where it leaves that to the config. Raises BadInput."""
    found = None
    for word in shlex.split(command):
        key, _, value = word.lstrip("+").partition("=")
        if key == "tracking.uri":
            found = destination_of({"uri": None if value in ("null", "") else _unquoted(value)})
        elif key == "tracking" and not value.startswith("{"):
            found = destination_of(_unquoted(value))
    return found


def declared(root: Path) -> str:
    """What conf/config.yaml says under `tracking`, read as plain YAML. Raises BadInput."""
    import yaml

    path = root / "conf" / "config.yaml"
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadInput(f"{path} cannot be read: {error}", remedy="correct the file") from error
    said = values.get("tracking", EMBEDDED) if isinstance(values, dict) else EMBEDDED
    if "${" in str(said):
        raise BadInput(
            f"{path}: tracking refers to something that only a run looks up", remedy="--uri http://HOST:PORT"
        )
    return destination_of(said)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
