"""What an autopilot came to: why it stopped, what it passed over, the headline and where its page is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import units
from campaign.report.json_text import as_line
from campaign.report.sweep import Ended, sweep_object

if TYPE_CHECKING:
    from campaign.ledger import Ledger

PAGE = "campaign.md"


@dataclass(frozen=True)
class Flight:
    """`stopped` is `tried`, `ceilings`, `budget`, `biased` or `interrupted`, and `why` the same in a sentence.

    `struck` says of an idea why it was not tried, `slower` names those not tried again because they were slower,
    `not_tried` those that the budget left out. `headline` is the sentence of root against head.
    """

    stopped: str
    why: str
    struck: dict[str, str] = field(default_factory=dict)
    slower: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()
    headline: str = ""
    page: str = ""
    spent_seconds: float = 0.0
    budget_seconds: float | None = None


def flight_text(flight: Flight) -> str:
    """Why it stopped and what was passed over, then the headline and the page."""
    lines = [f"stopped: {flight.why}"]
    lines += [f"not tried: {name}: {why}" for name, why in flight.struck.items()]
    if flight.not_tried:
        lines.append(f"not tried for want of time: {', '.join(flight.not_tried)}")
    if flight.slower:
        lines.append(f"not tried again though their neighbours changed, since slower: {', '.join(flight.slower)}")
    if flight.headline:
        lines.append(f"headline: {flight.headline}")
    of = "" if flight.budget_seconds is None else f" of {units.seconds(flight.budget_seconds)}"
    return "\n".join([*lines, f"took: {units.seconds(flight.spent_seconds)}{of}", f"page: {flight.page}"])


def flight_json(jobs: Sequence[Ended], flight: Flight) -> str:
    """`summary_json` of the tries with `"autopilot"`: the fields of `Flight`. On one line."""
    return as_line({**sweep_object(jobs), "autopilot": asdict(flight)})


def write_page(ledger: Ledger) -> Path:
    """The campaign's page beside its ledger, written whole. Raises LedgerDamaged; OSError where it cannot be."""
    from campaign.report.export import export

    path = ledger.folder / PAGE
    passing = path.with_name(f".{PAGE}.{os.getpid()}")
    text = export(ledger, "md")
    passing.write_bytes(text.encode() if isinstance(text, str) else text)
    os.replace(passing, path)
    return path
