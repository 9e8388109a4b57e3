"""The hypothesis node: its record, its ranges, and what its edit may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from campaign.config.claims import RULES_FILE, family_rules
from campaign.config.compose import Composer
from campaign.config.edits import check_code, settings, stacked
from campaign.config.evidence import check_evidence, counts_here, here
from campaign.config.schema import as_record, number, one_of, text
from campaign.diagnosis.families import document, members
from campaign.diagnosis.ideas import DISPATCH, KERNEL, UNSEEN
from campaign.errors import BadInput, DoesNotFit, UnknownName
from campaign.records import Edit, Hypothesis, Part
from campaign.records.plan import ASKS, LOSS_BOUND, PARITY_KINDS
from campaign.secrecy import secret_variable

NEEDS = ("compiler", "cuda", "triton", "fp8", "fp4", "torch_compile")
BY_WORKLOAD = ("predicted_ratio", "ceiling_ratio", "memory_growth_limit")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
# Arms have these roles, in plans and in studies, and edits of a factorial are roles by their own names.
ROLES = ("root", "head", "base", "solo", "control", "treatment")
WITHOUT = "without_"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def hypothesis_for(node: Any, choice: str | None, composer: Composer, workload: str) -> Hypothesis:
    """The `hypothesis` node of a composed config as a record; its name is its file's name.

    A set has `parts` in place of `edit`: a mapping from names to edits, of which its edit is the whole.

    What is predicted may differ by workload: a predicted count and each of `BY_WORKLOAD` may be a mapping from
    workloads to values, of which the chosen one's is taken.

    Raises BadInput naming the key, the value and the rule; UnknownName for a key or a hypothesis that does not exist.
    """
    if not isinstance(node, dict) or choice is None:
        raise BadInput(
            "no hypothesis is chosen", remedy=f"hypothesis=NAME, one of: {', '.join(composer.options('hypothesis'))}"
        )
    values = {"name": choice, **node}
    if values["name"] != choice:
        raise BadInput(
            f"hypothesis.name = {values['name']!r} in conf/hypothesis/{choice}.yaml: the name is the file's name",
            remedy=f"name: {choice}, or rename the file",
        )
    if not NAME.fullmatch(choice):
        raise BadInput(
            f"hypothesis {choice!r}: a name is letters, digits, '_', '-' and '.', at most 80 of them",
            remedy="rename the file: it names ledger entries, files and MLflow runs",
        )
    _check_role(choice, f"hypothesis {choice!r}", f"conf/hypothesis/{choice}.yaml")
    file = f"conf/hypothesis/{choice}.yaml"
    parts = _parts(values.pop("parts", None), choice, file)
    if parts and values.get("edit") is not None:
        raise BadInput(
            f"hypothesis {choice} has `edit` and `parts`: the edit of a set is all of its parts",
            remedy=f"put the edit among the parts, or take one of the two out of {file}",
        )
    values["edit"] = _whole(parts, choice, file) if parts else _edit_values(values.get("edit"))
    _predictions_here(values, workload, composer.options("workload"))
    if "parity" in values:
        values["parity"] = _claimed(values["parity"])
    found = replace(as_record(Hypothesis, values, "hypothesis", file=file), parts=parts)
    _check(found, composer)
    return found


def _claimed(node: Any) -> Any:
    """The parity node; a claim about losses that says no bound has one that fits losses, not rounding."""
    if isinstance(node, dict) and node.get("kind") == "loss" and node.get("bound") is None:
        return {**node, "bound": LOSS_BOUND}
    return node


def _parts(node: Any, choice: str, file: str) -> tuple[Part, ...]:
    """The parts of a set, each a whole edit; none for a hypothesis that is no set. Raises BadInput."""
    if node is None:
        return ()
    if not isinstance(node, dict) or len(node) < 2:
        raise BadInput(
            f"hypothesis.parts = {node!r}: a set is a mapping from names to edits, at least two of them",
            remedy="parts: {NAME: {overrides: [workload.KEY=VALUE]}, NAME: {...}}, or `edit` for a single one",
        )
    found = []
    for name, value in node.items():
        key = f"hypothesis.parts.{name}"
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise BadInput(
                f"{key}: the name of a part is letters, digits, '_', '-' and '.', at most 80 of them",
                remedy=f"rename the part in {file}",
            )
        _check_role(name, key, f"the part in {file}")
        edit = as_record(Edit, _edit_values(value), key, file=file)
        if edit.code:
            raise BadInput(
                f"{key}.{edit.code}: a part of a set changes configuration, and code is an edit of its own",
                remedy="a hypothesis for the code, and one for the rest that requires it",
            )
        if not edit.words:
            raise BadInput(
                f"{key} changes nothing: a part is an edit", remedy=f"{key}.overrides: [workload.KEY=VALUE] in {file}"
            )
        _check_variables(edit, key)
        settings(edit, where=f"hypothesis {choice}, part {name}")
        found.append(Part(name, edit))
    return tuple(found)


def _check_role(name: str, where: str, what: str) -> None:
    if name in ROLES or name.startswith(WITHOUT):
        raise BadInput(
            f"{where}: an arm has this name ({', '.join(ROLES)}, {WITHOUT}NAME), and an edit cannot",
            remedy=f"rename {what}",
        )


def _whole(parts: Sequence[Part], choice: str, file: str) -> dict[str, Any]:
    """The edit of a set: all of its parts. Raises BadInput where two of them set one key, to whatever values: one could
    not be left out without the other."""
    try:
        overrides, environment = stacked([(one.name, one.edit) for one in parts], where=f"hypothesis {choice}")
    except BadInput as error:
        raise BadInput(error.message, remedy=f"leave it to one of the two parts in {file}") from error
    return {"overrides": list(overrides), "environment": environment}


def _predictions_here(values: dict[str, Any], workload: str, known: list[str]) -> None:
    for name in BY_WORKLOAD:
        if isinstance(given := values.get(name), dict):
            values[name] = here(given, workload, f"hypothesis.{name}", known)
            if values[name] is None and name != "ceiling_ratio":
                raise DoesNotFit(
                    f"hypothesis.{name} says nothing of workload {workload} (it has {', '.join(map(str, given))})",
                    remedy=f"hypothesis.{name}=VALUE, or add `{workload}` or `other` to it in the file",
                )
    if "predicted_evidence" in values:
        values["predicted_evidence"] = counts_here(values["predicted_evidence"], workload, known)


def _edit_values(edit: Any) -> Any:
    """The edit with plain numbers among its environment values written as text, as an environment holds them."""
    if not isinstance(edit, dict):
        return {} if edit is None else edit
    environment = edit.get("environment")
    if not isinstance(environment, dict):
        return {name: value for name, value in edit.items() if value is not None}
    written = {
        name: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in environment.items()
    }
    return {**{name: value for name, value in edit.items() if value is not None}, "environment": written}


def _check_variables(edit: Edit, key: str) -> None:
    for variable in edit.environment:
        if not VARIABLE.fullmatch(variable):
            raise BadInput(
                f"{key}.environment: {variable!r} is not a name of an environment variable (letters, digits and '_', "
                "not starting with a digit)",
                remedy=f"++{key}.environment.NAME=VALUE",
            )
        if secret_variable(variable):
            raise BadInput(
                f"{key}.environment: {variable!r} looks like a secret, and the ledger would keep it",
                remedy="set it in the shell's environment, which both arms inherit and nothing records",
            )


def _check_acts_on(found: Hypothesis, composer: Composer) -> None:
    """What an edit acts on is what a profile can show: a family of kernels or a group of them, the project's own too,
    `dispatch`, `kernel:REGEX`, or what no profile tells apart. Raises BadInput, UnknownName with the nearest."""
    what = found.acts_on
    where = f"acts_on in conf/hypothesis/{found.name}.yaml"
    if what.startswith(KERNEL):
        try:
            re.compile(what.removeprefix(KERNEL))
        except re.error as error:
            raise BadInput(
                f"hypothesis.acts_on = {what!r} does not compile as a regular expression: {error}",
                remedy=f"correct {where}",
            ) from error
        return
    own = {rule["family"] for rule in family_rules(composer.root) if "family" in rule}
    if not members(what) and what not in {DISPATCH, *UNSEEN, *own}:
        known = {*document()["titles"], *document()["groups"], DISPATCH, *UNSEEN, *own}
        raise UnknownName(
            "family of kernels (hypothesis.acts_on)",
            what,
            known,
            remedy=f"correct {where}: a family, {DISPATCH}, {KERNEL}REGEX, or one of your own in conf/{RULES_FILE}",
        )


def _check(found: Hypothesis, composer: Composer) -> None:
    for key in ("claim", "mechanism", "acts_on"):
        text(getattr(found, key), f"hypothesis.{key}")
    _check_acts_on(found, composer)
    ratio = found.predicted_ratio
    number(ratio, "hypothesis.predicted_ratio", "control seconds / treatment seconds, above 0", ratio > 0)
    one_of(found.parity.kind, "hypothesis.parity.kind", PARITY_KINDS)
    number(found.parity.bound, "hypothesis.parity.bound", "above 0", found.parity.bound > 0)
    number(found.parity.factor, "hypothesis.parity.factor", "above 0", found.parity.factor > 0)
    growth = found.memory_growth_limit
    number(growth, "hypothesis.memory_growth_limit", "a fraction, 0 or more", growth >= 0)
    if found.ceiling_ratio is not None:
        ceiling = found.ceiling_ratio
        number(ceiling, "hypothesis.ceiling_ratio", "null, or the most that can be won, above 1", ceiling > 1)
    for need in found.needs:
        if need not in NEEDS:
            raise UnknownName("need in hypothesis.needs", need, NEEDS, remedy=f"hypothesis.needs=[{NEEDS[0]}]")
    check_evidence(found.predicted_evidence)
    _check_variables(found.edit, "hypothesis.edit")
    known = composer.options("hypothesis")
    for field in ("conflicts", "requires"):
        for name in getattr(found, field):
            if name not in known or name == found.name:
                others = [other for other in known if other != found.name]
                raise UnknownName(
                    f"hypothesis in hypothesis.{field}",
                    name,
                    others,
                    remedy=f"correct {field} in conf/hypothesis/{found.name}.yaml",
                )
    both = sorted(set(found.conflicts) & set(found.requires))
    if both:
        raise BadInput(
            f"hypothesis {found.name} both requires and conflicts with {', '.join(both)}",
            remedy=f"take {both[0]} out of `requires` or `conflicts` in conf/hypothesis/{found.name}.yaml",
        )
    one_of(found.asks, "hypothesis.asks", ASKS)
    check_code(found.edit, "hypothesis.edit")
    empty = not found.edit.words
    if found.null and not empty:
        raise BadInput(
            f"hypothesis {found.name} is null: true and has an edit; an A/A null changes nothing",
            remedy=f"take `null` or the edit out of conf/hypothesis/{found.name}.yaml",
        )
    if not found.null and empty:
        raise BadInput(
            f"hypothesis {found.name} has no edit: nothing would differ between control and treatment",
            remedy="hypothesis.edit.overrides: [workload.KEY=VALUE] or edit.ref=BRANCH, or null: true for an A/A null",
        )
    settings(found.edit, where=f"hypothesis {found.name}")
