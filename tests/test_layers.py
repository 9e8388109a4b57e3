"""The house of CONTRIBUTING.md, held by a walk over every import statement."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = {
    "words": {"copies", "records", "units", "errors", "discovery", "reading", "destination", "secrecy"},
    "reasoning": {
        "design",
        "diagnosis",
        "effects",
        "feasibility",
        "interactions",
        "occupancy",
        "stability",
        "stack",
        "traces",
        "traits",
        "verdicts",
    },
    "edges": {
        "callbacks",
        "config",
        "executor",
        "gate",
        "launch",
        "ledger",
        "lease",
        "likeness",
        "loop",
        "machine",
        "memory",
        "parity",
        "probe",
        "provenance",
        "static",
        "timing",
        "tracking",
        "worker",
    },
    "front": {"__main__", "callables", "cli", "comparison", "measurement", "parcel", "report", "run", "starting"},
}
ORDER = ("words", "reasoning", "edges", "front")
# Which modules, or single files where a package of them would be too wide, may import an outside package; everything
# else gets the standard library alone.
OUTSIDE = {
    "cloudpickle": {"parcel"},
    "numpy": {
        "callables",
        "effects",
        "interactions",
        "stability",
        "verdicts",
        "design",
        "parity",
        "probe",
        "diagnosis",
        "traces",
    },
    "greenlet": {"gate.py"},
    "msgspec": {"traces"},
    "isal": {"traces"},
    "ncu_report": {"traces"},
    "scipy": {"effects", "interactions", "stability", "verdicts", "design"},
    "pyDOE3": {"interactions"},
    "pandas": {"report"},
    "markdown_it": {"report"},
    "torch": {
        "likeness.py",
        "callables.py",
        "timing.py",
        "memory/tensors.py",
        "probe/operators.py",
        "probe/peaks.py",
        "probe/profiler.py",
        "starting/files/train_example.py",
        "worker.py",
    },
    "transformers": {"callbacks"},
    "tensorboard": {"launch"},
    "mlflow": {"tracking"},
    "sqlalchemy": {"tracking"},
    "matplotlib": {"comparison", "tracking", "report"},
    "hydra": {"config", "cli"},
    "omegaconf": {"config", "cli"},
    "git": {"provenance"},
    "click": {"cli"},
    "rich": {"report", "cli"},
    "yaml": {"config", "diagnosis", "feasibility", "tracking"},
}
# The one edge that another may lean on: the executor's worker is made of the modules that touch torch, and the
# executor shares timing's pure rules; static asks a worker through it; tracking reads the ledger that it mirrors.
BETWEEN_EDGES = {
    "config": {"launch"},
    "executor": {"timing"},
    "static": {"executor"},
    "worker": {"likeness", "timing", "memory", "probe"},
    "probe": {"timing"},
    "callbacks": {"loop"},
    "gate": {"timing", "worker"},
    "loop": {"gate"},
    "launch": {"likeness", "loop", "timing", "tracking"},
    "tracking": {"ledger"},
}
STANDARD = __import__("sys").stdlib_module_names


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def part(path: Path) -> str:
    """The top-level module of campaign/ that a file belongs to: `executor` for campaign/executor/rounds.py."""
    relative = path.relative_to(ROOT / "campaign")
    return relative.parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every dotted name that a file imports, at any depth of nesting."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "campaign":
                found |= {f"campaign.{alias.name}" for alias in node.names}
    return found


def floor(name: str) -> str:
    return next((floor for floor, names in FLOORS.items() if name in names), "none")


@pytest.mark.parametrize("path", sources("campaign"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_its_own_floor_and_below(path):
    own = part(path)
    if own == "__init__":
        return
    assert floor(own) != "none", f"{own} has no floor in the house: add it to CONTRIBUTING.md and here"
    for name in imports(path):
        if not name.startswith("campaign."):
            continue
        other = name.split(".")[1]
        if other in (own, "__version__"):
            continue
        assert floor(other) != "none", f"{path} imports {name}, which has no floor"
        if floor(own) == floor(other) == "edges":
            assert other in BETWEEN_EDGES.get(own, set()), f"edge {own} imports edge {other}"
        else:
            assert ORDER.index(floor(other)) <= ORDER.index(floor(own)), f"{path} reaches up to {name}"


@pytest.mark.parametrize("path", sources("campaign"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_the_packages_that_it_is_allowed(path):
    for name in imports(path):
        top = name.split(".")[0]
        assert top not in ("models", "kernels", "tests"), f"{path} imports {top}: dotted paths in conf/ only"
        if top in STANDARD or top in ("campaign", ""):
            continue
        places = {part(path), path.relative_to(ROOT / "campaign").as_posix()}
        assert places & OUTSIDE.get(top, set()), f"{path} imports {top}"


@pytest.mark.parametrize("start", ["verdicts", "effects", "interactions", "stability", "design", "stack"])
def test_no_path_leads_from_a_profile_to_a_verdict(start):
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources("campaign")
        if path != ROOT / "campaign" / "__init__.py"  # it loads what a script asks of it, and nothing by itself
    }
    waiting = [name for name in modules if name.split(".")[1:2] == [start]]
    reached = set(waiting)
    while waiting:
        for name in imports(modules[waiting.pop()]) & modules.keys() - reached:
            reached.add(name)
            waiting.append(name)
    parts = {name.split(".")[1] for name in reached if "." in name}
    assert parts >= {start}
    assert not parts & {"traces", "diagnosis", "feasibility", "probe", "run", "ledger"}


@pytest.mark.parametrize("path", sources("models") + sources("kernels"), ids=lambda path: str(path.relative_to(ROOT)))
def test_models_and_kernels_never_import_campaign(path):
    assert not {name for name in imports(path) if name.split(".")[0] == "campaign"}


@pytest.mark.parametrize("folder", ["campaign", "models", "kernels", "conf", "tests", "benchmarks"])
def test_no_file_grows_past_its_page(folder):
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".cpp", ".yaml")
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert not long


def test_no_file_has_a_name_that_says_nothing():
    empty = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
    found = [path for folder in ("campaign", "models", "kernels") for path in sources(folder) if path.stem in empty]
    assert not found
