"""Numbers as Nsight Compute prints them: with a unit of their own, and with the separators of somebody's locale.

`1,024` is a thousand in one locale and one in another. A value that says itself which it is (`1,234.5`, `12.56`,
`53.261.312`) is evidence for its file; a value that can be read both ways takes the file's evidence, or, where a file
contradicts itself, its column's. Where there is none it is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What stands in the place of a number that was not collected; an empty cell means that it was not asked for.
ABSENT = frozenset({"n/a", "(!) n/a", "nan", "-nan", "+nan", "no data", "inf", "-inf", "(!) nan", "<n/a>", "error"})
_NUMBER = re.compile(r"([+-]?)([\d.,]*\d[\d.,]*)(?:[eE]([+-]?\d{1,3}))?")
_GROUPING = str.maketrans("", "", " '\u2019\u00a0\u202f")  # these only ever group digits
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_FACTORS = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SECONDS = {
    **dict.fromkeys(("second", "s", "seconds"), 1.0),
    **dict.fromkeys(("msecond", "ms"), 1e-3),
    **dict.fromkeys(("usecond", "us", "\u00b5s"), 1e-6),
    **dict.fromkeys(("nsecond", "ns"), 1e-9),
}
_BYTES = re.compile(r"([kKMGTP]?)(?:bytes?|B)(/(?:second|s))?")
_SCALED = re.compile(r"([KMGTP])[a-z][a-z/]*")
_RATE = re.compile(r"[kMG]?hz|.*/[munp]?s(econd)?", re.IGNORECASE)
PERCENT, SECONDS, BYTES, BYTE_RATE, COUNT, RATE = "percent", "seconds", "bytes", "bytes per second", "count", "rate"


@dataclass(frozen=True)
class Reading:
    """One cell. `value` is in the unit as printed, None for what the tool could not collect or what can be read in two
    ways. `step` is what the last printed digit stands for, 0 for a value that was not printed."""

    value: float | None
    unit: str = ""
    step: float = 0.0


def scale(unit: str) -> tuple[str, float]:
    """What a unit measures, and how many plain ones (second, byte, byte a second) it is. Prefixes are decimal: 8,192
    bytes are printed as 8.192 Kbyte."""
    unit = unit.strip()
    plain = unit.removesuffix("/block")
    if unit in ("%", "pct", "percent"):
        return PERCENT, 1.0
    if plain in _SECONDS:
        return SECONDS, _SECONDS[plain]
    if found := _BYTES.fullmatch(plain):
        return BYTE_RATE if found[2] else BYTES, _FACTORS[found[1]]
    if _RATE.fullmatch(unit):
        return RATE, 1.0
    if found := _SCALED.fullmatch(unit):
        return COUNT, _FACTORS[found[1]]
    return COUNT, 1.0


LARGEST_EXPONENT, LONGEST_DIGITS = 99, 100


class Separators:
    """What a file says of its decimal separator, by its own values."""

    def __init__(self) -> None:
        self.file: set[str] = set()
        self.columns: dict[str, set[str]] = {}

    def observe(self, column: str, text: str) -> None:
        """Take a cell as evidence, where it is any."""
        if "." not in text and "," not in text:
            return
        proof = _decimal(text)
        if proof in (".", ","):
            self.file.add(proof)
            self.columns.setdefault(column, set()).add(proof)

    def reading(self, column: str, text: str, unit: str) -> Reading | None:
        """The cell's number; a Reading without value for one that is none, None for one that can be read in two
        ways."""
        text = text.strip()
        found = _NUMBER.fullmatch(text.translate(_GROUPING))
        proof = _decimal(text)
        if found is None or proof is None:
            return Reading(None, unit)
        if proof == "?":
            known = self.file if len(self.file) == 1 else self.columns.get(column, set())
            if len(known) != 1:
                return None
            proof = next(iter(known))
        sign, digits, exponent = found.groups()
        other = "," if proof == "." else "."
        plain = digits.replace(other, "").replace(proof, ".") if proof else digits
        power = int(exponent or 0)
        if abs(power) > LARGEST_EXPONENT or len(plain) > LONGEST_DIGITS:
            return Reading(None, unit)  # no counter is so large or small, and no float holds much more
        decimals = len(plain.partition(".")[2])
        return Reading(float(f"{sign}{plain}e{power}"), unit, 10.0 ** (power - decimals))


def _decimal(text: str) -> str | None:
    """The separator that this value proves to be the decimal one; '' where it has none, '?' where it can be read both
    ways, None where it is no number."""
    found = _NUMBER.fullmatch(text.strip().translate(_GROUPING))
    if found is None:
        return None
    digits, exponent = found[2], found[3]
    points, commas = digits.count("."), digits.count(",")
    if not points and not commas:
        return ""
    if points and commas:
        last = "." if digits.rfind(".") > digits.rfind(",") else ","
        whole = digits.rpartition(last)[0]
        return last if last not in whole and _GROUPED.fullmatch(whole) else None
    own, other = (".", ",") if points else (",", ".")
    if points + commas > 1:
        return other if _GROUPED.fullmatch(digits) else None
    head, _, tail = digits.partition(own)
    thousands = len(tail) == 3 and 1 <= len(head) <= 3 and not head.startswith("0") and exponent is None
    return "?" if thousands else own
