"""What a revalidation came to, after its findings were shown one by one: what to do about the stack."""

from __future__ import annotations

import shlex

from campaign.discovery import DEFAULT_CAMPAIGN
from campaign.records import to_json
from campaign.report import whole
from campaign.report.finding_text import found_values
from campaign.report.json_text import as_line
from campaign.report.listing import accepted
from campaign.report.plain import plain
from campaign.report.verdict_text import WORDS, effect_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from campaign.ledger import Ledger
    from campaign.run.revalidate import Changed, Retried, Revalidated

SCHEMA = 1


def revalidation_json(ledger: Ledger, done: Revalidated) -> str:
    """`{"schema": 1, "revalidate": {...}}` on one line, with the keys of `Revalidated`, and `parts`, what the parts of
    the stack come to, as in `campaign stack --json`. Findings and decisions are as in the ledger, not-finite numbers
    null."""
    parts = whole.parts(accepted(ledger), whole.findings(ledger))
    values = {
        "leave_one_out": found_values(done.left_out) if done.left_out else None,
        "proposed": list(done.proposed),
        "revoked": list(done.revoked),
        "apart": [found_values(found) for found in done.apart],
        "changed": [to_json(one) for one in done.changed],
        "retried": [
            {"again": one.changed.name, "decision": to_json(one.decision) if one.decision else None, "why": one.why}
            for one in done.retried
        ],
        "headline": found_values(done.headline) if done.headline else None,
        "parts": [
            {key: getattr(part, key) for key in ("kind", "sum", "product", "word", "lacking", "finding")}
            for part in parts
        ],
    }
    return as_line({"schema": SCHEMA, "revalidate": values})


def revalidation_text(ledger: Ledger, done: Revalidated) -> str:
    """The last block of `campaign revalidate`: the whole and its parts, then what is to be done."""
    name = ledger.folder.name
    option = "" if name == DEFAULT_CAMPAIGN else f" --campaign {shlex.quote(name)}"
    stack = accepted(ledger)
    lines = whole.lines(stack, whole.findings(ledger)) if stack else ["the stack is empty: head is root"]
    if done.revoked:
        lines.append(f"taken out, since they no longer pay: {', '.join(done.revoked)}")
    if done.proposed:
        lines.append(f"no longer pays, still in the stack: {', '.join(done.proposed)}")
        lines.append(f"  next: campaign revalidate --apply{option}")
        lines.append(f"  or:   campaign stack --revert {done.proposed[0]} --why TEXT{option}")
    if done.retried:
        lines += ["tried again:", *(f"  {_retried(one)}" for one in done.retried)]
    elif done.changed:
        lines += ["their neighbours changed since they were measured:", *(f"  {changed(one)}" for one in done.changed)]
        lines.append(f"  next: campaign revalidate --retry{option}")
    return plain("\n".join(lines))


def changed(one: Changed) -> str:
    """'#4 register_cap registers=8, reject (slower); joined since: prenorm_fusion'."""
    reason = f" ({one.reason})" if one.reason not in ("", one.verdict) else ""
    return f"#{one.sequence} {one.name}, {one.verdict}{reason}; {one.change}"


def _retried(one: Retried) -> str:
    was = f"{one.changed.name}, was {one.changed.verdict}"
    if one.decision is None:
        return f"{was}: not decided ({one.why})"
    verdict = one.decision.verdict
    said = f"{was}: {WORDS.get(verdict.verdict, verdict.verdict)} ({verdict.reason})"
    return f"{said}, {effect_line(verdict.effect)}" if verdict.effect else said
