"""Finding a project and the modules of a folder, so that a new file is enough to add a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from campaign.errors import BadInput, NotAProject

ROOT_VARIABLE = "CAMPAIGN_PROJECT"
DEFAULT_CAMPAIGN = "default"
# What of the packaged config holds for any workload: file names by group.
SHARED = {"protocol": "*.yaml", "hypothesis": "aa_null.yaml"}


def project_root(start: Path | None = None) -> Path:
    """The nearest folder, from `start` (default: the working directory) upwards, that holds `conf/config.yaml`.

    CAMPAIGN_PROJECT, when set, names it outright. Raises NotAProject.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        root = Path(named).resolve()
        if not (root / "conf" / "config.yaml").is_file():
            raise NotAProject(
                f"{ROOT_VARIABLE}={named} holds no conf/config.yaml", remedy=f"unset {ROOT_VARIABLE}, or correct it"
            )
        return root
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "conf" / "config.yaml").is_file():
            return folder
    raise NotAProject(
        f"no conf/config.yaml in {here} or above",
        remedy=f"campaign init    (lays one down here), or cd into a campaign project, or set {ROOT_VARIABLE}",
    )


def packaged_conf() -> Path | None:
    """The `conf/` that comes with campaign: inside the package when it was installed from a wheel, beside it in a
    checkout."""
    package = Path(__file__).parent
    folders = (package / "template" / "conf", package.parent / "conf")
    return next((folder for folder in folders if (folder / "config.yaml").is_file()), None)


def config_folders(conf: Path) -> list[Path]:
    """The folders that a project with this `conf/` takes every config group from, its own first. The packaged one is
    among them where the project has no workload of its own: packaged hypotheses are about the packaged workload."""
    packaged = packaged_conf()
    alone = packaged is None or any((conf / "workload").glob("*.yaml")) or packaged.resolve() == conf.resolve()
    return [conf] if alone or packaged is None else [conf, packaged]


def shared_options(group: str) -> dict[str, Path]:
    """Packaged options that fit any workload, by name: the protocols and the A/A null."""
    packaged = packaged_conf()
    if packaged is None or group not in SHARED:
        return {}
    return {path.stem: path for path in sorted((packaged / group).glob(SHARED[group]))}


def campaign_folder(root: Path, campaign: str) -> Path:
    """`runs/<campaign>`. Raises BadInput for a name that is not one plain folder name."""
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    if not campaign or set(campaign) - allowed or campaign.startswith("."):
        raise BadInput(
            f"campaign name {campaign!r}: letters, digits, '.', '_' and '-' only, not starting with '.'",
            remedy="--campaign NAME, or campaign.name=NAME for a run",
        )
    return root / "runs" / campaign


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Every public module directly inside `package`, imported, in the order of their names."""
    import importlib
    import pkgutil  # a listing needs neither

    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if not found.name.startswith("_"):
            yield importlib.import_module(f"{package.__name__}.{found.name}")
