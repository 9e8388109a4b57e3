"""The protocol of a store of entries, so that a shared database can take the journal's place.

`tests/ledger/test_every_store.py` is its contract: a new store joins that suite's list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from campaign.ledger.entry import Entry, Stamp


class Store(Protocol):
    """An append-only, ordered list of entries with client-made ids."""

    @property
    def place(self) -> str:
        """Where the entries are, for messages: a path or an address."""
        ...

    @property
    def torn(self) -> str:
        """What was cut from, or passed over at, the end of the store since it was opened; empty when nothing was."""
        ...

    def heal(self) -> str:
        """Cut what an interrupted append left behind, keep the cut bytes aside, and say so; empty when sound."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """For the body of the `with`, nobody else appends: what is read in it still holds when it appends. Readers do
        not wait for it. It may be entered again inside itself."""
        ...

    def append(self, kind: str, id: str, body: dict[str, Any], stamp: Stamp) -> Entry:
        """Add one entry and return it once it is durable.

        The same kind and id with an equal body again returns the first entry and adds nothing. Raises BadInput for
        an unknown kind, an unusable id, a body with NaN or infinity, and an id that is taken by another body.
        """
        ...

    def entries(self, kinds: Collection[str] | None = None, verify: bool = True, plan: str = "") -> Iterator[Entry]:
        """Entries in the order they were appended, of `kinds` (all when None).

        With `plan`, only those that belong to it: its `registered` or `study` entry, and those whose body names it as
        `plan_id`.

        `verify` checks every entry of the store first, whatever is asked for. Raises LedgerDamaged.
        """
        ...
