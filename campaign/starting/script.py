"""What a training script says of itself, from its syntax tree: whether it calls campaign, how it takes flags with which
defaults, and the line that it prints about a step. Nothing of it is imported or run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from campaign.starting.printed import Line, printed

Value = bool | int | float | str | None
PLAIN = "plain"
STYLES = {
    "argparse": "--{name}={value}",
    "click": "--{name}={value}",
    "transformers": "--{name}={value}",
    "hydra": "{name}={value}",
    PLAIN: "--{name}={value}",
}
GATES = {"steps", "step"}
MOST_FLAGS = 40
# A default is passed on where `type` makes of its text what it was.
KINDS: dict[str, type | tuple[type, ...]] = {"str": str, "Path": str, "pathlib.Path": str, "int": int,
                                             "float": (int, float)}  # fmt: skip
# Arguments of transformers' TrainingArguments that edits are about, where a script takes all of them from there. Its
# Trainer tells of its loss every `logging_steps`.
TRAINING_ARGUMENTS: dict[str, Value] = {"logging_steps": 1, "max_steps": None, "dataloader_num_workers": None,
    "torch_compile": None, "bf16": None, "gradient_checkpointing": None, "optim": None}  # fmt: skip


@dataclass(frozen=True)
class Script:
    """`gate` is what stops at campaign's gates (`campaign.steps`, `campaign.callbacks`), '' for none; `trainer` the
    library whose Trainer runs the loop; `style` a key of STYLES; `flags` their names with the defaults (None: left
    out); `needed` the arguments without which it does not start; `line` what it prints about a step; `flaw` why Python
    cannot read it, '' where it can."""

    gate: str = ""
    trainer: str = ""
    style: str = PLAIN
    flags: dict[str, Value] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    line: Line | None = None
    flaw: str = ""


def read(text: str) -> Script:
    """What a script's text says; one that is not Python says only why not."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return Script(flaw=f"line {error.lineno}: {error.msg}")
    except (ValueError, RecursionError) as error:
        return Script(flaw=str(error))
    imports = set(_imports(tree))
    style = _style(tree, imports)
    flags: dict[str, Value] = {}
    needed: list[str] = []
    if style in ("argparse", "click"):
        for name, value, must in _declared(tree, style):
            flags.setdefault(name, value)
            needed += [name] if must else []
    if style == "transformers" and "transformers.TrainingArguments" in imports:
        flags = dict(TRAINING_ARGUMENTS)
    return Script(
        gate=_gate(tree, imports),
        trainer=_trainer(tree, imports),
        style=style,
        flags=dict(list(flags.items())[:MOST_FLAGS]),
        needed=tuple(needed),
        line=printed(tree),
    )


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _gate(tree: ast.AST, imports: set[str]) -> str:
    if any(name.startswith("campaign.callbacks") for name in imports):
        return "campaign.callbacks"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _dotted(node.func)
            for name in sorted(GATES):
                imported = called == name and f"campaign.{name}" in imports
                if imported or called == f"campaign.{name}" or re.fullmatch(rf"campaign\.loop\.{name}", called):
                    return f"campaign.{name}"
    return ""


def _trainer(tree: ast.AST, imports: set[str]) -> str:
    libraries = {name.split(".")[0] for name in imports}
    called = {_dotted(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for library in ("transformers", "trl", "lightning", "pytorch_lightning", "accelerate"):
        wanted = {"Accelerator"} if library == "accelerate" else {"Trainer", "Seq2SeqTrainer", "SFTTrainer"}
        if library in libraries and wanted & called:
            return library
    return ""


def _style(tree: ast.AST, imports: set[str]) -> str:
    libraries = {name.split(".")[0] for name in imports}
    names = {_dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}
    if "hydra" in libraries and "hydra.main" in names:
        return "hydra"
    if names & {"argparse.ArgumentParser", "ArgumentParser"}:
        return "argparse"
    if "click" in libraries and "click.option" in names:
        return "click"
    return "transformers" if {"HfArgumentParser", "transformers.HfArgumentParser"} & names else PLAIN


def _declared(tree: ast.AST, style: str) -> Iterator[tuple[str, Value, bool]]:
    """Each flag's name, the default that may be passed as it is (None where it must be left out), and whether the
    script does not start without it."""
    wanted = "add_argument" if style == "argparse" else "click.option"
    exclusive = set(_receivers(tree, "add_mutually_exclusive_group"))
    others = set(_receivers(tree, "add_parser"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = _dotted(node.func)
        receiver = called.rpartition(".")[0]
        if not (called == wanted or called.endswith(f".{wanted}")) or receiver in others:
            continue
        names = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        options = {word.arg: word.value for word in node.keywords if word.arg}
        long = [name for name in names if name.startswith("--")]
        if names and not names[0].startswith("-"):
            optional = isinstance(nargs := options.get("nargs"), ast.Constant) and nargs.value in ("?", "*")
            if style == "argparse" and not optional and "default" not in options:
                yield names[0], None, True
        elif long:
            required = isinstance(one := options.get("required"), ast.Constant) and one.value is True
            value = None if receiver in exclusive or "/" in long[0] else _default(options)
            yield long[0].removeprefix("--").strip(), value, required


def _receivers(tree: ast.AST, method: str) -> Iterator[str]:
    """The names that are assigned from a call of `method`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if _dotted(node.value.func).endswith(f".{method}"):
                yield from (_dotted(target) for target in node.targets)


def _default(options: dict[str, ast.expr]) -> Value:
    """The default where passing it is the same as leaving it out, else None."""
    action = options.get("action")
    if action is not None:
        return False if isinstance(action, ast.Constant) and action.value == "store_true" else None
    if "is_flag" in options:
        return False
    if "nargs" in options or "multiple" in options or (value := _literal(options.get("default"))) is None:
        return None
    kind = _dotted(options["type"]) if "type" in options else "str"
    fits = KINDS.get(kind)
    whole = not isinstance(value, bool) and fits is not None and isinstance(value, fits)
    return value if whole and value != "" else None


def _literal(node: ast.expr | None) -> Value:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _dotted(node: ast.AST) -> str:
    """`a.b.c` as text; '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else f".{node.attr}"
    return ""
