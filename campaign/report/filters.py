"""Which decisions a listing or an export shows: by verdict, by age, by hypothesis."""

from __future__ import annotations

import time
from collections import namedtuple

from campaign.errors import BadInput, UnknownName

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

VERDICTS = ("accept", "reject", "inconclusive", "invalid", "unavailable")
SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
SINCE = "--since 2026-12-01, --since 2026-12-01T09:30 (UTC), or an age: --since 90m, 12h, 3d, 2w"


class Filters(namedtuple("Filters", ("verdicts", "since", "hypotheses", "asked"))):
    """What is wanted: `verdicts` and `hypotheses` (tuples of names; empty: all), `since` (a moment as the ledger writes
    it, UTC, to the second; empty: from the beginning), `asked` (the options as they were typed)."""

    __slots__ = ()

    def keep(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The wanted of these rows (`listing.rows`). Raises UnknownName for a hypothesis that none of them has."""
        names = {row["hypothesis"] for row in rows}
        for name in self.hypotheses:
            if name not in names:
                raise UnknownName("decision on a hypothesis", name, names, remedy="campaign ledger")
        return [row for row in rows if self._wanted(row)]

    def _wanted(self, row: Mapping[str, Any]) -> bool:
        return (
            (not self.verdicts or row["verdict"] in self.verdicts)
            and (not self.hypotheses or row["hypothesis"] in self.hypotheses)
            and row["decided_at"][: len(self.since)] >= self.since
        )

    def said(self, shown: int, of: int) -> str:
        """'3 of 12 decisions are shown: --verdict accept'."""
        return f"{shown} of {of} decisions are shown: {self.asked}"


def read(verdict: str | None, since: str | None, hypothesis: str | None) -> Filters | None:
    """The filters that these options ask for, None for none. Raises UnknownName, BadInput."""
    asked = [
        f"{name} {value}"
        for name, value in (("--verdict", verdict), ("--since", since), ("--hypothesis", hypothesis))
        if value is not None
    ]
    if not asked:
        return None
    verdicts = _names("--verdict", verdict)
    for name in verdicts:
        if name not in VERDICTS:
            raise UnknownName("verdict", name, VERDICTS, remedy="campaign ledger --verdict accept,reject")
    return Filters(verdicts, _moment(since), _names("--hypothesis", hypothesis), " ".join(asked))


def _names(option: str, given: str | None) -> tuple[str, ...]:
    if given is None:
        return ()
    names = tuple(name.strip() for name in given.split(","))
    if not all(names):
        raise BadInput(
            f"{option} {given!r} has an empty name",
            remedy=f"{option} {'accept,reject' if option == '--verdict' else 'NAME,NAME'}",
        )
    return names


def _moment(given: str | None) -> str:
    """'2026-12-01' as it is, an age as the moment so long ago: '2026-11-28T09:30:00'."""
    if given is None:
        return ""
    text, unit = given.strip(), given.strip()[-1:]
    if unit in SECONDS and text[:-1].isascii() and text[:-1].isdigit() and int(text[:-1]) * SECONDS[unit] < time.time():
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - int(text[:-1]) * SECONDS[unit]))
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"):
        try:
            moment = time.strptime(text.removesuffix("Z"), form)
        except ValueError:
            continue
        return time.strftime("%Y-%m-%dT%H:%M:%S", moment)
    raise BadInput(f"--since {given!r} is neither a day nor an age", remedy=SINCE)
