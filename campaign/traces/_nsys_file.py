"""One SQLite file, opened so that neither it nor what it holds can do harm: read-only, nothing written beside it, no
trusted schema, values of bounded length, and an end to every query. Errors of SQLite become BadInput with the table.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from campaign.errors import BadInput
from campaign.traces.spool import Spool

MAGIC = b"SQLite format 3\0"
ROWS = 10_000  # of one block
ROWS_ASIDE = 1 << 16  # that a spool keeps in memory which only serves to join others
MISSING = -(1 << 63)  # in a block: NULL, no whole number, or no such column
LONGEST_VALUE = 1 << 20  # bytes of one text that SQLite may load
# Reading a row takes about one instruction of SQLite's machine for each of its bytes; a view without end takes more.
INSTRUCTIONS, INSTRUCTIONS_PER_BYTE, INSTRUCTIONS_AT_ONCE = 500_000_000, 50, 1_000_000


class TooLong(BadInput):
    """A row holds a text that is longer than SQLite may load here."""


class Export:
    """The tables of the file by their upper-case names. `finished` says what was read to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.finished: list[str] = []
        self._columns: dict[str, dict[str, str]] = {}
        self._instructions = 0
        self._most = INSTRUCTIONS + INSTRUCTIONS_PER_BYTE * path.stat().st_size
        _check_whole(path)
        with self._speaking("the list of tables"):
            # `immutable`: SQLite then looks for no journal and makes no -shm beside the file.
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            self._guard()
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            self.tables = {name.upper(): name for (name,) in found.fetchall()}

    def close(self) -> None:
        self._connection.close()

    def has(self, table: str) -> bool:
        return table.upper() in self.tables

    def columns(self, table: str) -> Mapping[str, str]:
        """The columns of a table or view by their lower-case names; empty where there is no such table."""
        if table not in self._columns:
            rows: Sequence[Any] = ()
            if self.has(table):
                with self._speaking(table):
                    rows = self._connection.execute(f"PRAGMA table_info({self.quoted(table)})").fetchall()
            self._columns[table] = {row[1].lower(): row[1] for row in rows}
        return self._columns[table]

    def quoted(self, table: str) -> str:
        return _quoted(self.tables[table.upper()])

    def whole(self, table: str, *names: str) -> str:
        """SQL for the first of the columns that the table has, as a whole number or MISSING."""
        for name in names:
            if (found := self.columns(table).get(name.lower())) is not None:
                column = _quoted(found)
                return f"CASE typeof({column}) WHEN 'integer' THEN {column} ELSE {MISSING + 1} - 1 END"
        return f"{MISSING + 1} - 1"

    def text(self, table: str, name: str, length: int) -> str:
        """SQL for a column as text, cut to a length, or NULL."""
        found = self.columns(table).get(name.lower())
        return f"CAST(substr({_quoted(found)}, 1, {length}) AS TEXT)" if found is not None else "NULL"

    def rows(self, table: str, select: str, rest: str = "") -> Iterator[list[tuple[Any, ...]]]:
        """Blocks of the rows of `SELECT {select} FROM {table} {rest}`. Raises BadInput with the table and how many
        rows were read before."""
        count = 0
        with self._speaking(table, lambda: count):
            cursor = self._connection.execute(f"SELECT {select} FROM {self.quoted(table)} {rest}")
            while block := cursor.fetchmany(ROWS):
                count += len(block)
                yield block

    def blocks(self, table: str, fields: Mapping[str, Sequence[str]]) -> Iterator[np.ndarray]:
        """Blocks of whole numbers: each field from the first of its columns that the table has, else MISSING."""
        dtype = np.dtype([(field, np.int64) for field in fields])
        select = ", ".join(self.whole(table, *names) for names in fields.values())
        count = 0
        for rows in self.rows(table, select):
            count += len(rows)
            yield np.fromiter(rows, dtype, len(rows))
        self.finished.append(f"{self.tables[table.upper()]} ({count:,} rows)")

    def some(self, table: str, select: str, rest: str = "", most: int = 10_000) -> list[tuple[Any, ...]]:
        """The first rows of a query, empty where there is no such table."""
        if not self.has(table):
            return []
        found: list[tuple[Any, ...]] = []
        for block in self.rows(table, select, f"{rest} LIMIT {most}"):
            found += block
        return found

    def again(self) -> str:
        """The command that makes the export again."""
        return export_command(self.path)

    @contextmanager
    def _speaking(self, table: str, count: Any = lambda: 0) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite's message quotes damaged bytes
            after = f" after {count():,} rows" if count() else ""
            before = f"; read before it: {', '.join(self.finished[-4:])}" if self.finished else ""
            why = "damaged text in it" if isinstance(error, UnicodeDecodeError) else str(error)
            if why == "interrupted":
                why = "it does not come to an end (a view over itself?)"
            kind = TooLong if isinstance(error, sqlite3.DataError) else BadInput
            raise kind(
                f"{self.path}: {table} cannot be read{after}: {why[:200]}{before}", remedy=self.again()
            ) from error

    def _guard(self) -> None:
        connection = self._connection
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(self._tick, INSTRUCTIONS_AT_ONCE)
        for pragma in ("trusted_schema = OFF", "query_only = ON", "mmap_size = 0"):
            connection.execute(f"PRAGMA {pragma}")

    def _tick(self) -> bool:
        self._instructions += INSTRUCTIONS_AT_ONCE
        return self._instructions > self._most


def aside(dtype: np.dtype) -> Spool:
    """A spool for rows on their way."""
    return Spool(dtype, ROWS_ASIDE)


def export_command(path: Path) -> str:
    """The command that makes an export from the report that it is of."""
    report = shlex.quote(str(path.with_suffix(".nsys-rep")))
    out = shlex.quote(str(path.with_suffix(".sqlite")))
    return f"nsys export --type sqlite --force-overwrite true --output {out} {report}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_whole(path: Path) -> None:
    """Raises BadInput for a file that was cut, and for one whose last writer did not finish."""
    for suffix in ("-wal", "-journal"):
        beside = Path(f"{path}{suffix}")
        if beside.is_file() and beside.stat().st_size:
            command = "execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchall()"
            code = f"import sqlite3; sqlite3.connect({str(path)!r}).{command}"
            raise BadInput(
                f"{path}: {beside.name} beside it holds changes that are not in the file: its writer still runs, or "
                "ended early. Once nothing writes to it, they can be put in",
                remedy=f"python -c {shlex.quote(code)}",
            )
    with path.open("rb") as file:
        head = file.read(100)
    page = int.from_bytes(head[16:18], "big")
    size = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    held = path.stat().st_size
    # The count of pages is valid where the two change counters agree (SQLite's file format, 1.3.7).
    if len(head) < 100 or (head[24:28] == head[92:96] and size > held):
        raise BadInput(
            f"{path}: the file is cut: it has {held:,} bytes of {max(size, 100):,}", remedy=export_command(path)
        )
