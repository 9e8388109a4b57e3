"""Numbers as a person types them, `14.08k`, `1.0009e9`, `1.0009B`, `7d`, `3%`, and large ones as a person reads them.

Every refusal is a BadInput with the value, the rule, and a command that works.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from campaign.errors import BadInput

EXAMPLE = {
    "--tokens-per-second": "14.08k",
    "--parameters": "1.0009e9",
    "--tokens-per-parameter": "20",
    "--days": "7",
}
HOUR = 1 / 24  # of a day: the shortest run that is asked about
SMALLEST_PART = 0.001
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12, "p": 1e15}
_PER_SECOND = ("tokens/s", "token/s", "tok/s", "flop/s", "flops", "b/s", "/s")
_DAYS = {"": 1.0, "d": 1.0, "day": 1.0, "days": 1.0, "h": 1 / 24, "hours": 1 / 24, "w": 7.0, "weeks": 7.0}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z%]*)", re.ASCII)


def example(*more: str, without: tuple[str, ...] = ()) -> str:
    """A whole command that works, with `more` at its end."""
    said = [f"{name} {value}" for name, value in EXAMPLE.items() if name not in without]
    return " ".join(["campaign feasibility", *said, *more])


def large(text: str, option: str, rule: str, least: float, most: float, *, remedy: str = "") -> float:
    """A count or a rate from `least` (above 0) to `most`: plain, with an exponent, or with k, M, B (or G), T, P."""
    word = text.lower().strip()
    word = next((word.removesuffix(end) for end in _PER_SECOND if word.endswith(end)), word)
    value = _scaled(word.strip(), _SCALES)
    if value is None or not least <= value <= most:
        raise BadInput(f"{option} {text}: {rule}, from {least:g} to {most:g}", remedy=remedy or example())
    return value


def whole(text: str, option: str, rule: str, most: int, *, remedy: str = "") -> int:
    """A whole number from 1."""
    value = _scaled(text.lower().strip(), _SCALES)
    if value is None or value != int(value) or not 1 <= value <= most:
        raise BadInput(f"{option} {text}: {rule}, a whole number from 1 to {most}", remedy=remedy or example())
    return int(value)


def days(text: str, option: str, most: float) -> float:
    """A time in days, 7 or 7d, in hours (36h) or in weeks (2w)."""
    value = _scaled(text.lower().strip(), _DAYS)
    if value is None or not HOUR <= value <= most:
        raise BadInput(f"{option} {text}: a time, 7d, 36h or 2w, from 1h to {most:g} days", remedy=example())
    return value


def part(text: str, option: str, rule: str, *, whole_too: bool = False, remedy: str = "") -> float:
    """A part of 1, 0.03 or 3%: from 0 to below 1, or with `whole_too` from a thousandth to 1."""
    value = _scaled(text.lower().strip(), {"": 1.0, "%": 0.01})
    if value is None or not (SMALLEST_PART <= value <= 1 if whole_too else 0 <= value < 1):
        bounds = f"from {SMALLEST_PART:g} to 1" if whole_too else "from 0 to below 1"
        raise BadInput(f"{option} {text}: {rule}, {bounds}, as 0.9 or 90%", remedy=remedy or example())
    return value


def _scaled(word: str, scales: Mapping[str, float]) -> float | None:
    """The number of a word with its unit; None for what is no finite number, or has another unit."""
    found = _NUMBER.fullmatch(word)
    if found is None or found[2] not in scales:
        return None
    value = float(found[1]) * scales[found[2]]
    return value if math.isfinite(value) else None


def shown(value: float, digits: int = 5, *, down: bool = False) -> str:
    """'20.018B', '652.8M', '512'. `down` never shows more than there is, as a limit must."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")):
        # Compared as it is shown, so that 999,999 is 1M and not 1000k.
        if value >= scale * (1.0 if down else 1 - 0.5 * 10.0**-digits):
            return f"{_digits(value / scale, digits, down=down)}{unit}"
    return f"{value:.{digits}g}"


def _digits(value: float, digits: int, *, down: bool) -> str:
    places = max(digits - 1 - math.floor(math.log10(value)), 0)
    # A millionth of the last place: 8.5156 must not become 8.5155 by the way that it is stored.
    kept = math.floor(value * 10**places + 1e-6) / 10**places if down else value
    said = f"{kept:.{places}f}"
    return said.rstrip("0").rstrip(".") if "." in said else said


def shown_days(value: float, *, down: bool) -> str:
    """'16.45 days': a bound to two places, rounded `down` for a lower bound, up for a time that is enough."""
    kept = math.floor(value * 100 + 1e-6) / 100 if down else math.ceil(value * 100 - 1e-6) / 100
    said = f"{kept:,.2f}".rstrip("0").rstrip(".")
    return f"{said} day" if said == "1" else f"{said} days"
