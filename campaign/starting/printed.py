r"""The line that a script prints about a step, as a pattern: `f"step {i} loss {loss:.4f}"` becomes
`step (?P<step>\d+) loss (?P<loss>NUMBER)`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
# For a script whose line was not found: the two words somewhere in one line.
GENERAL = rf"(?i)\b(?:step|iter\w*)\W{{0,3}}(?P<step>\d+)\b.*?\bloss\W{{0,4}}(?P<loss>{NUMBER})"
# What transformers' Trainer prints: a dict, whose values are texts in some versions.
TRAINER = rf"'loss': '?(?P<loss>{NUMBER})"
LOGS = ("print", "info", "log", "write", "debug", "set_postfix_str", "set_description")
STEP = re.compile(r"(?i)(?:\b|_)(global_step|step|steps|iter|iteration|iters|it|batch_idx|i)(?:\b|_)")
FILLED = re.compile(r"%[-+#0 ]*\d*(?:\.\d+)?[sdfgei]")
BRACES = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Line:
    """`source` is the line of the script, `pattern` finds its output; `step` says whether it counts its steps."""

    source: int
    pattern: str
    step: bool


def printed(tree: ast.AST) -> Line | None:
    """The best line about a training step that the script prints, None where it prints none with a loss."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in LOGS and (parts := _parts(node)):
                if pattern := _pattern(parts):
                    said = "".join(part if isinstance(part, str) else "" for part in parts).lower()
                    about_training = not re.search(r"\b(val|eval|valid|validation|test)\b", said)
                    found.append((about_training, "(?P<step>" in pattern, -node.lineno, pattern))
    if not found:
        return None
    _, step, line, pattern = max(found)
    return Line(-line, pattern, step)


Part = str | ast.expr | None


def _parts(call: ast.Call) -> list[Part]:
    """What a call prints, as texts and the expressions between them (None for one that is not known)."""
    parts: list[Part] = []
    for place, argument in enumerate(call.args):
        parts += [" "] if place else []
        parts += _text(argument)
    return parts


def _text(node: ast.expr) -> list[Part]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [part for one in node.values for part in _text(one)]
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_text(node.left), *_text(node.right)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _filled(str(node.left.value), FILLED, list(values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        if isinstance(node.func.value, ast.Constant):
            named = {word.arg: word.value for word in node.keywords}
            return _filled(str(node.func.value.value), BRACES, list(node.args), named)
    return [node]


def _filled(
    text: str, holes: re.Pattern[str], values: list[ast.expr], named: dict[str | None, ast.expr] | None = None
) -> list[Part]:
    parts: list[Part] = []
    end = 0
    for place, hole in enumerate(holes.finditer(text)):
        name = hole[0].strip("{}").partition(":")[0]
        value = (named or {}).get(name) or (values[place] if place < len(values) else None)
        parts += [text[end : hole.start()], value]
        end = hole.end()
    return [*parts, text[end:]]


def _pattern(parts: list[Part]) -> str:
    """The pattern up to the loss; '' where no loss is printed."""
    said, pattern, step = "", "", False
    for part in parts:
        if isinstance(part, str):
            said, pattern = part, pattern + _escaped(part)
            continue
        name = ast.unparse(part) if part is not None else ""
        word = re.sub(r"[^A-Za-z_]+$", "", said)
        if re.search(r"(?i)loss$", word) or (not word and re.search(r"(?i)loss", name)):
            return _begun(f"{_padded(pattern)}(?P<loss>{NUMBER})")
        if not step and (STEP.search(name) or re.search(r"(?i)(step|iter\w*)$", word)) and "epoch" not in name:
            # An expression may print more than the count ("3/100"), so what follows is left open by the text after it.
            pattern, step = rf"{_padded(pattern)}(?P<step>\d+)", True
        else:
            pattern += r".*?"
        said = ""
    return ""


def _padded(pattern: str) -> str:
    """A number may have spaces before it, where its format has a width."""
    return pattern if pattern.endswith(r"\s+") else rf"{pattern}\s*"


def _begun(pattern: str) -> str:
    return pattern.removeprefix(r"\s*").removeprefix(".*?")


def _escaped(text: str) -> str:
    text = text.lstrip("\r\n")
    return re.sub(r"(?:\\ |\s|\\\n|\\\t)+", r"\\s+", re.escape(text)) if text else ""
