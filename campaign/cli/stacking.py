"""`campaign stack`: the accepted edits in order, and what a person decides about them."""

from __future__ import annotations

import shlex

from campaign.cli.answer import opened
from campaign.errors import EXIT_DECIDED, BadInput, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from campaign.ledger import Ledger
    from campaign.records import Hypothesis

    Row = Mapping[str, Any]

SUMMARY = "the accepted edits in order, each with its state; decide about one yourself"
MORE = """\
examples:
  campaign stack
  campaign stack --revert prenorm_fusion --why 'breaks resume'
  campaign stack --accept register_cap --why 'pays on the production shape'
  campaign stack --reject compile --why 'start-up takes too long'

HYPOTHESIS may be a decision's number or id too; a name means its newest decision (of --revert, the one in the stack).
What a person decides is recorded as that: the verdict and its evidence stay as they are."""
WAYS = ("revert", "accept", "reject")
PARITY = "parity"  # the reason of an edit that does not compute the same


def stack_arguments(parser: argparse.ArgumentParser) -> None:
    """What a person may decide, and why."""
    helps = {
        "revert": "take an edit out of the stack again",
        "accept": "put an edit that was measured into the stack, whatever its verdict was",
        "reject": "rule against an edit, in the stack or not",
    }
    for way in WAYS:  # collected, so that a second one is refused instead of taking the first one's place
        parser.add_argument(f"--{way}", metavar="HYPOTHESIS", action="append", help=helps[way])
    parser.add_argument("--why", metavar="TEXT", help="the reason, kept in the ledger (needed with each of these)")


def stack(given: argparse.Namespace) -> int:
    """Show the stack, after what was decided about one edit; the exit code. Raises CampaignError."""
    asked = [(way, name) for way in WAYS for name in getattr(given, way) or ()]
    _check(given, asked)
    with opened(given, writable=bool(asked)) as ledger:
        for way, name in asked:
            with ledger.transaction():
                {"revert": _revert, "accept": _accept, "reject": _reject}[way](ledger, name, given.why.strip())
        from campaign.report.stack import stack_json, stack_text

        print(stack_json(ledger) if given.json else stack_text(ledger))
    return EXIT_DECIDED


def _check(given: argparse.Namespace, asked: list[tuple[str, str]]) -> None:
    way, name = asked[0] if asked else ("revert", "HYPOTHESIS")
    name = shlex.quote(name)
    if len(asked) > 1:
        said = " and ".join(f"--{one} {about}" for one, about in asked)
        raise BadInput(
            f"{said} are {len(asked)} decisions, each with its own reason",
            remedy=f"campaign stack --{way} {name} --why 'the reason'    (then the next)",
        )
    if bool(asked) != bool(given.why is not None and given.why.strip()):
        raise BadInput(
            f"--{way} and --why go together: a stack changes for a reason that is written down",
            remedy=f"campaign stack --{way} {name} --why 'the reason'",
        )


def _revert(ledger: Ledger, asked: str, why: str) -> None:
    """Take the decision on `asked` out of the stack and record the stack that is left."""
    rows = ledger.stack_rows()
    row = next((row for row in reversed(rows) if asked in _names(row)), None)
    if row is None:
        names = [row["hypothesis"] for row in rows]
        raise UnknownName("hypothesis in the accepted stack", asked, names, remedy="campaign stack")
    _not_needed(ledger, row)
    ledger.revoke(row["id"], why)
    _write(ledger)


def _reject(ledger: Ledger, asked: str, why: str) -> None:
    """Rule against a decision: out of the stack with it if it is in it."""
    row = _decision(ledger, asked, "reject")
    stacked = [one["id"] for one in ledger.stack_rows()]
    if row["id"] in stacked:
        _not_needed(ledger, row)
    ledger.rule(row["id"], "reject", why)
    if row["id"] in stacked:
        _write(ledger)


def _accept(ledger: Ledger, asked: str, why: str) -> None:
    """Rule for a decision, which puts its edit at the end of the stack, if it can run there at all and its arms were
    compared."""
    from campaign.records import TRIAL_FAILURES

    row = _decision(ledger, asked, "accept")
    verdict, name = row["verdict"]["verdict"], row["hypothesis"]
    if row["id"] in [one["id"] for one in ledger.stack_rows()]:
        raise BadInput(f"{name} is in the stack already, by decision {row['sequence']}", remedy="campaign stack")
    hypothesis = ledger.plan(row["plan_id"]).hypothesis
    if hypothesis.null:
        raise BadInput(f"decision {row['sequence']} is about an A/A null, which has no edit", remedy="campaign ledger")
    if hypothesis.asks != "faster":
        raise BadInput(
            f"decision {row['sequence']} asked only whether {name} is slower: it is no gain, and joins no stack",
            remedy="campaign hypothesis=NAME, with a hypothesis of the change",
        )
    if verdict == "unavailable":
        raise BadInput(
            f"{name} could not run on this machine (decision {row['sequence']}), so nothing could be measured with it",
            remedy=f"campaign hypothesis={name}, on a machine that has what it needs",
        )
    reason = row["verdict"]["reason"]
    if verdict == "invalid" and reason in (*TRIAL_FAILURES, PARITY):
        raise BadInput(
            f"decision {row['sequence']} ended as {reason}, so {name} was never compared with what is without it:"
            f" {row['verdict']['sentence']}",
            remedy=f"mend it, then campaign hypothesis={name}",
        )
    for other in ledger.stack():
        _together(hypothesis, ledger.plan(other.plan_id).hypothesis, ledger)
    missing = [one for one in hypothesis.requires if one not in ledger.standing().names()]
    if missing:
        raise BadInput(f"{name} requires {', '.join(missing)} in the stack", remedy=f"campaign hypothesis={missing[0]}")
    ledger.rule(row["id"], "accept", why)
    _write(ledger)


def _together(one: Hypothesis, other: Hypothesis, ledger: Ledger) -> None:
    """Raises BadInput where two edits cannot be in one stack."""
    remedy = f"campaign stack --campaign {ledger.folder.name} --revert {other.name} --why '...' first"
    if one.name == other.name:
        raise BadInput(f"{one.name} is in the stack already, by another decision", remedy=remedy)
    if other.name in one.conflicts or one.name in other.conflicts:
        raise BadInput(f"{one.name} conflicts with {other.name}, which is in the stack", remedy=remedy)
    keys = _keys(one) & _keys(other)
    if keys:
        raise BadInput(f"{one.name} and {other.name} in the stack both set {', '.join(sorted(keys))}", remedy=remedy)


def _keys(hypothesis: Hypothesis) -> set[str]:
    edit = hypothesis.edit
    return {override.partition("=")[0].lstrip("+~") for override in edit.overrides} | set(edit.environment)


def _decision(ledger: Ledger, asked: str, way: str) -> Row:
    """The newest decision that `asked` names; of --reject, one in the stack before any other."""
    rows = [row for row in ledger.decision_rows() if asked in _names(row)]
    if not rows:
        names = {row["hypothesis"] for row in ledger.decision_rows()}
        raise UnknownName("decision on a hypothesis", asked, names, remedy="campaign ledger")
    stacked = [one["id"] for one in ledger.stack_rows()]
    inside = [row for row in rows if row["id"] in stacked]
    return inside[-1] if way == "reject" and inside else rows[-1]


def _names(row: Row) -> tuple[str, ...]:
    """What a person may call a decision by."""
    return (row["hypothesis"], row["id"], str(row["sequence"]), f"#{row['sequence']}")


def _not_needed(ledger: Ledger, row: Row) -> None:
    """Raises BadInput where another edit in the stack requires this one."""
    name = row["hypothesis"]
    needing = [
        one.hypothesis for one in ledger.stack() if name in ledger.plan(one.plan_id).hypothesis.requires
    ]  # fmt: skip
    if needing:
        raise BadInput(
            f"{', '.join(needing)} in the stack requires {name}",
            remedy=f"campaign stack --campaign {ledger.folder.name} --revert {needing[-1]} --why '...' first",
        )


def _write(ledger: Ledger) -> None:
    from campaign.run import write_stack

    write_stack(ledger)
