"""Quantities as people read them. Nothing here rounds a stored number; only what is shown."""

from __future__ import annotations

import math

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def ratio(value: float) -> str:
    """A speed ratio (control seconds / treatment seconds): '1.042x'."""
    return f"{value:.3f}x" if math.isfinite(value) else "n/a"


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
    """'1 decision', '6 decisions'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
