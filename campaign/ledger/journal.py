"""The store on a file: one JSON object a line, each chained to the one before by its hash.

An append takes the writers' turn and the file's lock, cuts a torn tail aside, writes one line and returns when the
line is on the disk. Reading takes the shared lock for as long as the read itself, so that a half-written line is never
seen; it waits for no one's turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.errors import BadInput, LedgerDamaged
from campaign.ledger.chain import Misplaced, Rechained, before_torn_tail, chained, newer, pick
from campaign.ledger.disk import SHARE, WAIT, Turn, lock, refused, sync_folder
from campaign.ledger.entry import (
    GENESIS,
    Entry,
    NewerSchema,
    Stamp,
    Unreadable,
    decode,
    decode_many,
    digest,
    encode,
    flaw_in_id,
    not_finite,
    now,
    to_entry,
)

TURN_FILE = ".lock"
_READ_BYTES = 256 * 1024  # twice as fast as the default on a ledger of 50 MB
_DECODED_AT_ONCE = 250
KINDS = frozenset(
    (
        "campaign registered probe trial blocks decision stack note revoked static ruling study finding sweep "
        "profile diagnosis doctor"
    ).split()
)


class Journal:
    """A ledger file. Safe for several processes and for `kill -9` at any moment; see `store.Store`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self._turn = Turn(path.with_name(TURN_FILE))
        self._size = 0  # bytes of the file that were checked
        self._lines = 0
        self._prev = GENESIS
        self._seen = (0, 0, 0)  # inode, size and time of change of the file when it was checked
        self._known: dict[tuple[str, str], tuple[int, int, int]] = {}  # (kind, id) -> line, first byte, past last byte
        self._plans: dict[str, list[tuple[int, int, int]]] = {}  # plan id -> the same of its lines

    @property
    def place(self) -> str:
        """The file's path."""
        return str(self.path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `store.Store.transaction`. Raises LedgerUnwritable."""
        with self._turn.taken():
            yield

    def heal(self) -> str:
        """Cut a torn tail into `<name>.torn` and say so; an empty string when there was none. A line that another
        process is writing is waited for. Raises LedgerUnwritable where nothing could be written."""
        before = self.torn
        self.torn = ""
        if not self.path.exists():
            return ""  # and nothing is made: a run that is refused leaves no folder
        with self.transaction():
            with _locked(self.path) as file:
                self._sound(file)
        found, self.torn = self.torn, self.torn or before
        return found

    def append(self, kind: str, id: str, body: dict, stamp: Stamp) -> Entry:
        """See `store.Store.append`. Raises LedgerDamaged for a file that cannot be trusted, CampaignError when the
        disk refuses the write: the line is then not in the ledger."""
        if kind not in KINDS:
            raise BadInput(f"{kind!r} is no kind of ledger entry; the kinds are {', '.join(sorted(KINDS))}")
        if flaw := flaw_in_id(id):
            raise BadInput(f"ledger id {id!r}: {flaw}")
        moment = now()
        try:
            encode(kind, id, 0, GENESIS, moment, stamp, body)
        except (ValueError, TypeError) as error:
            place = not_finite(body)
            why = f"{place} is NaN or infinite, which JSON cannot hold; write null" if place else str(error)
            raise BadInput(f"{kind} {id} cannot be written to the ledger: {why}") from error
        with self.transaction(), _locked(self.path, create=True) as file:
            if not self._is_as_seen(file):
                self._sound(file)
            if (kind, id) in self._known:
                return self._repeated(file, kind, id, body)
            line = encode(kind, id, self._lines + 1, self._prev, moment, stamp, body)
            _write(file, self.path, line, self._size)
            value = decode(line)
            self._add(line, value)
            self._look(file)
            return to_entry(value, self._lines)

    def entries(self, kinds: Collection[str] | None = None, verify: bool = True, plan: str = "") -> Iterator[Entry]:
        """See `store.Store.entries`. With verify=False only the asked-for lines are parsed; of the others the first
        and last bytes are looked at, and that each is chained to the one before."""
        try:
            yield from self._entries(kinds, verify, plan)
        except (Misplaced, Rechained):
            for _ in Journal(self.path)._entries(None, True, ""):
                pass  # the check of every line raises at the one that is damaged
            raise

    def _entries(self, kinds: Collection[str] | None, verify: bool, plan: str) -> Iterator[Entry]:
        try:
            with open(self.path, "rb", buffering=_READ_BYTES) as file:
                lock(file.fileno(), self.path, SHARE)
                if verify:
                    self._check(file.fileno())
                if verify and plan:
                    lines = self._plans.get(plan, [])
                    picked = [(number, os.pread(file.fileno(), stop - start, start)) for number, start, stop in lines]
                else:
                    picked, torn = pick(file, self.place, kinds, json.dumps(plan)[1:-1].encode(), checked=verify)
                    self._note_torn(torn)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused(self.path, "read", error) from error
        for start in range(0, len(picked), _DECODED_AT_ONCE):
            some = picked[start : start + _DECODED_AT_ONCE]
            values = decode_many([line for _, line in some])
            for place, (number, line) in enumerate(some):
                value = values[place] if values else self._decoded(number, line)
                if value["line"] != number:
                    raise Misplaced(self.place, number, value["line"])
                if (kinds is None or value["kind"] in kinds) and (not plan or _plan_of(value) == plan):
                    yield to_entry(value, number)

    def _decoded(self, number: int, line: bytes) -> dict:
        try:
            return decode(line)
        except Unreadable as error:
            raise LedgerDamaged(self.place, number, str(error)) from error
        except NewerSchema as error:
            raise newer(self.place, number, error) from error

    def _note_torn(self, why: str) -> None:
        if why:
            self.torn = f"{self.path}: the last line is torn ({why}); the next append cuts it"

    def _check(self, file: int) -> None:
        """Check what is new in the file since the last look, without changing it."""
        if self._is_as_seen(file):
            return
        data = self._unread(file)
        sound, why = before_torn_tail(data)
        self._catch_up(file, data[:sound])
        self._note_torn(why)

    def _is_as_seen(self, file: int) -> bool:
        """Whether the file is the one of the last look. One that was not only appended to is checked anew."""
        now = os.fstat(file)
        inode, size, changed = self._seen
        if (now.st_ino, now.st_size, now.st_mtime_ns) == (inode, size, changed):
            return size == self._size
        if now.st_ino != inode or now.st_size <= size:
            self._size, self._lines, self._prev = 0, 0, GENESIS
            self._known.clear()
            self._plans.clear()
        return False

    def _sound(self, file: int) -> None:
        """Check what is new in the file, then cut a torn tail aside. A damaged file is left as it is."""
        if self._is_as_seen(file):
            return
        data = self._unread(file)
        sound, why = before_torn_tail(data)
        self._catch_up(file, data[:sound])
        if not why:
            return
        aside = self.path.with_name(self.path.name + ".torn")
        tail = data[sound:]
        try:
            with open(aside, "ab") as kept:
                kept.write(tail if tail.endswith(b"\n") else tail + b"\n")
                kept.flush()
                os.fsync(kept.fileno())
            os.ftruncate(file, self._size)
            os.fsync(file)
        except OSError as error:
            raise refused(self.path, "heal", error) from error
        self._look(file)
        self.torn = f"{self.path}: {len(tail)} bytes at the end were torn ({why}); cut into {aside.name}"

    def _unread(self, file: int) -> bytes:
        """What was written since the last look, by whomever."""
        return os.pread(file, os.fstat(file).st_size - self._size, self._size)

    def _catch_up(self, file: int, data: bytes) -> None:
        """Check the whole lines in `data`, which are new since the last look."""
        for number, line, value in chained(data, self.place, 0, self._lines + 1, self._prev):
            earlier = self._known.get((value["kind"], value["id"]))
            if earlier:
                raise LedgerDamaged(
                    self.place, number, f"{value['kind']} {value['id']} is already written in line {earlier[0]}"
                )
            self._add(line, value)
        self._look(file)

    def _look(self, file: int) -> None:
        now = os.fstat(file)
        self._seen = (now.st_ino, now.st_size, now.st_mtime_ns)

    def _add(self, line: bytes, value: dict) -> None:
        self._lines += 1
        place = (self._lines, self._size, self._size + len(line))
        self._known[value["kind"], value["id"]] = place
        self._plans.setdefault(_plan_of(value), []).append(place)
        self._size += len(line)
        self._prev = digest(line)

    def _repeated(self, file: int, kind: str, id: str, body: dict) -> Entry:
        number, start, stop = self._known[kind, id]
        first = decode(os.pread(file, stop - start, start))
        same = decode(encode(kind, id, 0, GENESIS, "", Stamp(), body))["body"]
        if first["body"] != same:
            changed = sorted(k for k in {*first["body"], *same} if first["body"].get(k) != same.get(k))
            raise BadInput(
                f"{self.path}, line {number}: {kind} {id} is already written with another {', '.join(changed)}; "
                "the ledger is append-only",
                remedy="use a new id for a new entry",
            )
        return to_entry(first, number)


@contextmanager
def _locked(path: Path, *, create: bool = False) -> Iterator[int]:
    """The file opened and exclusively locked, as a descriptor; a created file's folder is synced."""
    file = -1
    try:
        new = create and not path.exists()
        file = os.open(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), 0o644)
        if new:
            sync_folder(path.parent)
    except OSError as error:
        if file >= 0:
            os.close(file)
        raise refused(path, "open", error) from error
    try:
        lock(file, path, WAIT)
        yield file
    finally:
        os.close(file)


def _write(file: int, path: Path, line: bytes, size: int) -> None:
    """Write the whole line at the end and sync it; on a refusal take back what was written of it."""
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except OSError as error:
        try:
            os.ftruncate(file, size)
        except OSError:
            pass  # the torn tail stays and the next append cuts it
        raise refused(path, "write", error) from error


def _plan_of(value: dict) -> str:
    """The plan or study that a decoded line belongs to, or an empty string."""
    plan = value["id"] if value["kind"] in ("registered", "study") else value["body"].get("plan_id")
    return plan if isinstance(plan, str) else ""
