"""What a project says to a profile: its hypotheses' claims, and its own rules for families of kernels.

The files are read as plain YAML, without Hydra's compose: a profile needs three of their keys, at once, and a
hypothesis that could not be run must not hide the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yaml import YAMLError, safe_load

from campaign.config.evidence import OTHER
from campaign.diagnosis.question import IdeaClaim
from campaign.discovery import config_folders
from campaign.errors import BadInput, UnknownName

RULES_FILE = "diagnosis.yaml"


def claims(root: Path, workload: str | None = None) -> tuple[list[IdeaClaim], list[str]]:
    """The claims of every hypothesis in the project at `root` that is no A/A null, and a warning for each file that
    says none. Where a prediction differs by workload it is that of `workload`, or of the project's default one.

    Raises UnknownName for a workload that does not exist.
    """
    folders = config_folders(root / "conf")
    known = sorted({path.stem for folder in folders for path in (folder / "workload").glob("*.yaml")})
    if workload is not None and workload not in known:
        raise UnknownName("workload", workload, known, remedy=f"--workload {known[0] if known else 'NAME'}")
    chosen = workload or _default_workload(root)
    files = {path.stem: path for folder in reversed(folders) for path in (folder / "hypothesis").glob("*.yaml")}
    found, warnings = [], []
    for name, path in sorted(files.items()):
        try:
            claim = _claim(name, path, chosen)
        except (OSError, ValueError, YAMLError) as error:
            warnings.append(f"{path}: left out of what to try: {' '.join(str(error).split())}")
            continue
        if claim is not None:
            found.append(claim)
    return found, warnings


def family_rules(root: Path) -> tuple[Mapping[str, str], ...]:
    """The rules of the list `families` in conf/diagnosis.yaml, each a mapping of texts; none without the file.

    Raises BadInput for a file that is no such thing. What a rule must say is the classifier's to check.
    """
    path = root / "conf" / RULES_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}", remedy="correct the file, or move it away") from error
    remedy = "families: [{family: FAMILY, pattern: REGEX}], one rule a line (docs/diagnosis.md)"
    try:
        content = safe_load(text) or {}
    except YAMLError as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}", remedy=remedy) from error
    if not isinstance(content, dict) or set(content) - {"families"}:
        raise BadInput(f"{path} holds `families` and nothing else", remedy=remedy)
    rules = content.get("families") or []
    if not isinstance(rules, list):
        raise BadInput(f"{path}: `families` must be a list of rules", remedy=remedy)
    for place, rule in enumerate(rules, 1):
        if not (isinstance(rule, dict) and all(isinstance(word, str) for pair in rule.items() for word in pair)):
            raise BadInput(f"{path}: rule {place} must be a mapping of texts, and is {rule!r}", remedy=remedy)
    return tuple(rules)


def _default_workload(root: Path) -> str:
    """The workload of conf/config.yaml's defaults; empty where it names none."""
    try:
        content = safe_load((root / "conf" / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError):
        return ""
    entries = content.get("defaults") if isinstance(content, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("workload"), str):
            return str(entry["workload"])
    return ""


def _claim(name: str, path: Path, workload: str) -> IdeaClaim | None:
    """The claim of one file, None for an A/A null. Raises ValueError, OSError, YAMLError."""
    content = safe_load(path.read_text(encoding="utf-8"))
    node = content.get("hypothesis") if isinstance(content, dict) else None
    if not isinstance(node, dict):
        raise ValueError("it has no `hypothesis`")
    if node.get("null"):
        return None
    acts_on = node.get("acts_on")
    if not isinstance(acts_on, str) or not acts_on.strip():
        raise ValueError(f"acts_on = {acts_on!r} is no text")
    return IdeaClaim(name, acts_on.strip(), _predicted(node.get("predicted_ratio"), workload))


def _predicted(value: Any, workload: str) -> float:
    if isinstance(value, dict):
        value = value.get(workload, value.get(OTHER))
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"predicted_ratio = {value!r} is no ratio above 0" + (f" of {workload}" if workload else ""))
    return float(value)
