"""Quantities as people read them. Nothing here rounds a stored number; only what is shown."""

from __future__ import annotations

import math

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def ratio(value: float) -> str:
    """A speed ratio (control seconds / treatment seconds): '1.042x'."""
    return f"{value:.3f}x" if math.isfinite(value) else "n/a"


def bound(value: float | None) -> str:
    """The most that a ratio can be: 'at most 1.042x', 'no bound' where nothing limits it."""
    return "no bound" if value is None else f"at most {ratio(value)}"


def interval(low: float, high: float) -> str:
    """An interval of ratios: '[1.031, 1.053]'."""
    return f"[{low:.3f}, {high:.3f}]"


def percent(fraction: float, digits: int = 1) -> str:
    """A signed share: 0.042 -> '+4.2 %'."""
    return f"{100 * fraction:+.{digits}f} %"


def seconds(value: float) -> str:
    """A duration in the unit that reads best: '12.3 ms', '4.10 s', '3 min 20 s'."""
    if value < 1e-3:
        return f"{value * 1e6:.1f} us"
    if value < 1:
        return f"{value * 1e3:.1f} ms"
    if value < 60:
        return f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def nanoseconds(value: float) -> str:
    """A duration of a profile, to four digits: '640 ns', '12.35 us', '2.102 ms', '12.81 s'."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(value) >= 0.99995 * factor:
            return f"{_digits(value / factor, 4)} {unit}"
    return f"{int(value)} ns" if value == int(value) else f"{_digits(value, 3)} ns"


def signed_nanoseconds(value: float) -> str:
    """A difference of durations with its sign: '+2.102 ms', '-640 ns', '0 ns'."""
    return ("+" if value > 0 else "") + nanoseconds(value)


def share(fraction: float) -> str:
    """A part of a whole, unsigned: '24.8 %', '3.38 %', '0.164 %', '<0.001 %'. Only all of it is '100 %'."""
    percentage = 100 * fraction
    if 0 < percentage < 0.0005:
        return "<0.001 %"
    if 99.95 <= percentage < 100:
        return ">99.9 %"
    return f"{percentage:.3f} %" if 0 < percentage < 0.9995 else f"{_digits(percentage, 3)} %"


def many(count: float) -> str:
    """A count, also a mean one, with thousands apart: '49,480', '12.5', '9.65M', '0'."""
    if abs(count) >= 1e6 or count == int(count):
        return f"{_digits(count / 1e6, 3)}M" if abs(count) >= 1e6 else f"{int(count):,}"
    return f"{count:,.0f}" if abs(count) >= 999.95 else _digits(count, 4).rstrip("0").rstrip(".")


def bandwidth(bytes_per_second: float) -> str:
    """Bytes a second in decimal units, as the makers of memory count: '3,350 GB/s', '12.4 GB/s'."""
    if bytes_per_second >= 1e9:
        billions = bytes_per_second / 1e9
        return f"{billions:,.0f} GB/s" if billions >= 1000 else f"{_digits(billions, 3)} GB/s"
    return f"{_digits(bytes_per_second / 1e6, 3)} MB/s"


def _digits(value: float, digits: int) -> str:
    """`digits` significant ones, without an exponent: 12.35, 2.102; 0 alone has none."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # after rounding to so many digits
    return f"{value:,.{max(digits - 1 - exponent, 0)}f}"


def size(count: float) -> str:
    """Bytes in binary units: '24.0 MiB', '9.07 GiB'."""
    if abs(count) >= GIB:
        return f"{count / GIB:.2f} GiB"
    if abs(count) >= MIB:
        return f"{count / MIB:.1f} MiB"
    if abs(count) >= KIB:
        return f"{count / KIB:.1f} KiB"
    return f"{count:.0f} B"


def signed_size(count: float) -> str:
    """A difference in bytes with its sign: '+2.99 GiB', '0 B'."""
    return ("+" if count > 0 else "") + size(count)


def rate(tokens_per_second: float) -> str:
    """Tokens a second: '13.65k tok/s', '512 tok/s'."""
    if tokens_per_second >= 1e6:
        return f"{tokens_per_second / 1e6:.2f}M tok/s"
    if tokens_per_second >= 1e3:
        return f"{tokens_per_second / 1e3:.2f}k tok/s"
    return f"{tokens_per_second:.0f} tok/s"


def counted(number: int, noun: str) -> str:
    """'1 decision', '6 decisions', '2 launches'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"
