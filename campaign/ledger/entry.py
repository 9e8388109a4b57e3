"""One line of the ledger: its two records, and its bytes.

Line order is fixed, `kind` first, so that a listing can tell kinds apart without parsing. These records are named
tuples and not dataclasses: a listing starts in a few milliseconds because it imports neither `dataclasses` nor
`typing`.
"""

from __future__ import annotations

import json
import string
import time
from collections import namedtuple

LINE_SCHEMA = 1
"""The schema number on each line; the same as `records.SCHEMA`, kept here because importing records costs 40 ms."""

GENESIS = "0" * 64
"""`prev` of the first line."""

_ID_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._:/+-@")
_ID_LENGTH = 200


class Stamp(namedtuple("Stamp", ("host", "fingerprint", "commit", "patch"), defaults=("", "", "", ""))):
    """What every line is stamped with, all str: host name, hash of the machine's fingerprint, git commit, and the
    SHA-256 of the patch on top of it (both empty when unknown)."""

    __slots__ = ()


class Entry(namedtuple("Entry", ("kind", "id", "line", "time", "body", "stamp"), defaults=(Stamp(),))):
    """One entry as read: kind (str), id (str), line (int, 1-based), time (str, ISO 8601 in UTC), body (dict of JSON
    values), stamp (Stamp)."""

    __slots__ = ()


class Unreadable(ValueError):
    """A line's bytes are not an entry. The caller knows the line number and whether it is the last."""


class NewerSchema(ValueError):
    """The line was written by a newer campaign."""


def now() -> str:
    """This moment in UTC, milliseconds: '2026-01-31T09:30:00.123Z'."""
    moment = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment * 1000) % 1000:03d}Z"


def flaw_in_id(id: str) -> str:
    """Why `id` cannot be an entry's id, or an empty string. Ids never need escaping in JSON."""
    if not isinstance(id, str) or not id:
        return "an id is a string of at least one character"
    if len(id) > _ID_LENGTH:
        return f"an id has at most {_ID_LENGTH} characters, this one {len(id)}"
    wrong = set(id) - _ID_CHARACTERS
    if wrong:
        return f"an id has letters, digits and . _ : / + - @ only, not {''.join(sorted(wrong))!r}"
    return ""


def digest(line: bytes) -> str:
    """SHA-256 of a line's bytes with its newline: the next line's `prev`."""
    from hashlib import sha256  # here: a listing that was kept needs none, and OpenSSL takes milliseconds to load

    return sha256(line).hexdigest()


def encode(kind: str, id: str, number: int, prev: str, moment: str, stamp: Stamp, body: dict) -> bytes:
    """The bytes of line `number` (1-based) with its newline, ASCII only.

    Raises ValueError for NaN or infinity, TypeError for a value that JSON has no form for.
    """
    line = {
        "kind": kind,
        "line": number,
        "id": id,
        "prev": prev,
        "schema": LINE_SCHEMA,
        "time": moment,
        "host": stamp.host,
        "fingerprint": stamp.fingerprint,
        "commit": stamp.commit,
        "patch": stamp.patch,
        "body": body,
    }
    return json.dumps(line, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_scan = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def decode(line: bytes) -> dict:
    """The line as a dict of its eleven keys. Raises Unreadable, or NewerSchema."""
    try:
        text = line.decode("utf-8")
        value, end = _scan(text)
        if text[end:] != "\n":
            raise ValueError(f"more than one value, from character {end} on")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON ({error})") from error
    return _checked(value)


def decode_many(lines: list[bytes]) -> list[dict] | None:
    """`decode` of each line, in one parse: a third faster, because equal keys are made once. None when one of them is
    no entry; which one, and why, `decode` says."""
    try:
        values = _scan("[" + b",".join(lines).decode("utf-8") + "]")[0]
        return [_checked(value) for value in values] if len(values) == len(lines) else None
    except (ValueError, RecursionError):
        return None


def _checked(value: object) -> dict:
    if not isinstance(value, dict):
        raise Unreadable("it is JSON, but not an object")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > LINE_SCHEMA:
        raise NewerSchema(f"schema {schema} was written by a newer campaign; this one reads up to {LINE_SCHEMA}")
    for key in ("kind", "id", "prev", "time"):
        if not isinstance(value.get(key), str):
            raise Unreadable(f"it has no {key!r}")
    if not (isinstance(schema, int) and isinstance(value.get("line"), int) and isinstance(value.get("body"), dict)):
        raise Unreadable("it has no whole-number 'schema' or 'line', or no 'body' object")
    return value


def to_entry(value: dict, number: int) -> Entry:
    """The Entry of a decoded line."""
    get = value.get
    stamp = Stamp(get("host", ""), get("fingerprint", ""), get("commit", ""), get("patch", ""))
    return Entry(value["kind"], value["id"], number, value["time"], value["body"], stamp)


def not_finite(value: object, where: str = "body") -> str:
    """The place of the first NaN or infinity inside `value`: 'body.verdict.effect.ratio', or an empty string."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return where
    if isinstance(value, dict):
        parts = ((inner, f"{where}.{key}") for key, inner in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ((inner, f"{where}[{index}]") for index, inner in enumerate(value))
    else:
        return ""
    return next((found for inner, place in parts if (found := not_finite(inner, place))), "")
