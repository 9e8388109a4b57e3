"""What the bytes of a ledger file say: where a torn tail starts, whether the chain holds, where the entries are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from campaign.errors import LedgerDamaged
from campaign.ledger.entry import GENESIS, NewerSchema, Unreadable, decode, digest

START = b'{"kind":"'
END = b"}\n"
CARRIAGE = b"}\r\n"
PREV = b'"prev":"'  # of a line its first one: the kind, the number and the id before it hold no quote
FUSED = b"}" + START  # two entries in one line; inside an entry a quote after a brace is always escaped or keyed


def newer(place: str, number: int, error: NewerSchema) -> LedgerDamaged:
    damage = LedgerDamaged(place, number, str(error))
    damage.remedy = "pip install --upgrade campaign"
    return damage


class Misplaced(LedgerDamaged):
    """Line `number` says that it is line `says`: somewhere before it a newline or a line went missing, or came."""

    def __init__(self, place: str, number: int, says: int) -> None:
        why = f"it was written as line {says}: before it a newline is missing, or lines were taken out or put in"
        super().__init__(place, number, why)


class Rechained(LedgerDamaged):
    """Line `number` does not name the bytes of the line before it."""

    def __init__(self, place: str, number: int) -> None:
        super().__init__(place, number, "it was chained to other bytes than those of the line before it")


def _flaw(line: bytes) -> str:
    """Why `line` does not look like one entry from its first and last bytes; empty when it does."""
    if line.endswith(CARRIAGE):
        return "it ends in CR LF; git rewrote the line ends (git config core.autocrlf false, then check it out again)"
    if not line.endswith(b"\n"):
        return "it has no newline"
    if not (line.startswith(START) and line.endswith(END)):
        return f"it is not a whole ledger entry: it starts {line[:40].decode('utf-8', 'replace').strip()!r}"
    if FUSED in line:
        return "it holds two entries: the newline between them is missing"
    return ""


def before_torn_tail(data: bytes) -> tuple[int, str]:
    """How many bytes come before a torn tail, and what is wrong with the tail (empty when there is none)."""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        return whole, "it has no newline"
    if not data:
        return 0, ""
    start = data.rfind(b"\n", 0, whole - 1) + 1
    if data.endswith(CARRIAGE, start):
        return whole, ""  # whole, but rewritten by another system; the check of the chain refuses it
    try:
        if flaw := _flaw(data[start:whole]):
            return start, flaw
        decode(data[start:whole])
    except Unreadable as error:
        return start, str(error)
    except NewerSchema:
        pass  # not torn; the check of the chain refuses it by its line number
    return whole, ""


def chained(data: bytes, place: str, start: int, number: int, prev: str) -> Iterator[tuple[int, bytes, dict]]:
    """(line number, bytes, decoded) of every line from byte `start` on, that being line `number`, chained to `prev`.

    Raises LedgerDamaged for the first line that cannot be trusted. Where the chain is broken that is the line
    before: its bytes are not those that the next line was chained to.
    """
    while start < len(data):
        stop = data.index(b"\n", start) + 1
        line = data[start:stop]
        start = stop
        try:
            if flaw := _flaw(line):
                raise Unreadable(flaw)
            value = decode(line)
        except Unreadable as error:
            raise LedgerDamaged(place, number, str(error)) from error
        except NewerSchema as error:
            raise newer(place, number, error) from error
        if value["prev"] != prev:
            if number == 1:
                raise LedgerDamaged(place, 1, "it is not the first line that was written: lines before it are missing")
            raise LedgerDamaged(
                place,
                number - 1,
                f"line {number} was chained to other bytes: this line was changed after it was written, "
                f"or lines between it and line {number} were taken out",
            )
        if value["line"] != number:
            raise Misplaced(place, number, value["line"])
        yield number, line, value
        prev = digest(line)
        number += 1


def pick(
    lines: Iterable[bytes], place: str, kinds: Collection[str] | None, mention: bytes, *, checked: bool = False
) -> tuple[list[tuple[int, bytes]], str]:
    """(line number, bytes) of the lines of `kinds` that hold `mention`, and what is wrong with a torn last line.

    Of a line that is not picked only the first and last bytes are looked at, and, unless the file is `checked`
    already, whether it is chained to the line before: a listing shows no number that was changed afterwards. Two
    lines that a lost newline made one are noticed by the number that the next picked line, or the file's last one,
    was written with. Raises LedgerDamaged for a line before the last that fails this.
    """
    from hashlib import sha256  # as in `entry.digest`; not that, because the call alone is a third of this loop

    starts = (START,) if kinds is None else tuple(START + kind.encode() + b'"' for kind in kinds)
    picked = []
    flawed = number = broken = 0
    line = b""
    prev = GENESIS.encode()
    for number, line in enumerate(lines, 1):
        if flawed:
            break
        if line.startswith(starts) and line.endswith(END):
            if mention in line:
                picked.append((number, line))
        elif not (line.startswith(START) and line.endswith(END)):
            flawed, flaw = number, _flaw(line)
            continue
        if not checked:
            if not broken and not line.startswith(prev, line.find(PREV) + len(PREV)):
                broken = number
            prev = sha256(line).hexdigest().encode()
    if flawed and (number > flawed or line.endswith(CARRIAGE)):
        raise LedgerDamaged(place, flawed, flaw)
    if broken and broken < number:
        raise Rechained(place, broken)
    if flawed or not number:
        return picked, flaw if flawed else ""
    try:
        says = decode(line)["line"]
    except Unreadable as error:
        return [one for one in picked if one[0] != number], str(error)
    except NewerSchema:
        return picked, ""  # not torn; refused by its number when it is read
    if says != number:
        raise Misplaced(place, number, says)
    if broken:
        raise Rechained(place, broken)
    return picked, ""
