"""The protocols that are shipped, for who measures without a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from campaign.config.protocol import FIELDS, protocol_for
from campaign.discovery import packaged_conf
from campaign.errors import NotAProject, UnknownName
from campaign.records import Protocol


def packaged_root() -> Path:
    """The folder of the `conf/` that comes with campaign. Raises NotAProject where it was left out."""
    conf = packaged_conf()
    if conf is None:
        raise NotAProject("this campaign came without its conf/", remedy="pip install --force-reinstall campaign")
    return conf.parent


def packaged_protocol(name: str, device: str, settings: Mapping[str, Any]) -> Protocol:
    """The shipped protocol `name` for a device, with the fields in `settings` in place of its own. No workload has a
    say in it.

    Raises BadInput for a value that is out of range, UnknownName for a protocol or field that does not exist.
    """
    folder = packaged_root() / "conf" / "protocol"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise UnknownName("protocol", name, known, remedy=f"protocol={known[-1]}")
    for field in settings:
        if field not in FIELDS:
            raise UnknownName("protocol field", field, FIELDS)
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return protocol_for({**_node(folder, name), **given}, device)


def _node(folder: Path, name: str) -> dict[str, Any]:
    """A protocol's file over those that its defaults list names. Without Hydra, whose one application in a process may
    be the caller's own."""
    read = OmegaConf.to_container(OmegaConf.load(folder / f"{name}.yaml"), resolve=True)
    own: dict[str, Any] = {str(key): value for key, value in read.items()} if isinstance(read, dict) else {}
    merged: Any = OmegaConf.create({})
    for one in own.pop("defaults", ["_self_"]):
        merged = OmegaConf.merge(merged, own if one == "_self_" else _node(folder, one))
    return dict(OmegaConf.to_container(merged))  # type: ignore[arg-type]
