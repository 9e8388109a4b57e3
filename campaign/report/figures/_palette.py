"""The colours of the figures by what they stand for, once for light paper and once for dark.

Okabe and Ito's blue, vermilion and green, darker for light paper and lighter for dark, so that each has at least 3:1
against it; words are in `ink` or `quiet`, which have at least 4.5:1. What a colour says, a shape or a word says too.
"""

from __future__ import annotations

INK, QUIET, LINE, SOFT, PAPER = "ink", "quiet", "line", "soft", "paper"
BLUE, VERMILION, GREEN, PURPLE = "blue", "vermilion", "green", "purple"
LIGHT = {
    INK: "#1f2328",
    QUIET: "#59636e",
    LINE: "#d0d7de",
    SOFT: "#e7ecf0",
    PAPER: "#ffffff",
    BLUE: "#0072b2",
    VERMILION: "#c2500a",
    GREEN: "#00825f",
    PURPLE: "#9b4f96",
}
DARK = {
    INK: "#e6edf3",
    QUIET: "#9aa3ad",
    LINE: "#3d444d",
    SOFT: "#262c36",
    PAPER: "#0d1117",
    BLUE: "#56b4e9",
    VERMILION: "#ff9355",
    GREEN: "#35c48f",
    PURPLE: "#d89bd0",
}
_VARIABLES = {colour: f"--figure-{name}" for name, colour in LIGHT.items()}


def variable(colour: str, *, dark: bool) -> str:
    """`var(--figure-blue, #0072b2)` for a colour of `LIGHT`, with the fallback of dark paper where `dark`; a colour
    that is none of them as it is."""
    found = _VARIABLES.get(colour.lower())
    if found is None:
        return colour
    return f"var({found},{shade(colour, dark=dark)})"


def shade(colour: str, *, dark: bool) -> str:
    """The same colour on dark paper where `dark`."""
    name = _VARIABLES.get(colour.lower(), "").removeprefix("--figure-")
    return DARK[name] if dark and name else colour


def theme() -> str:
    """CSS declarations of every colour for both themes, for a page's `:root` with `color-scheme: light dark`."""
    return " ".join(f"--figure-{name}: light-dark({LIGHT[name]}, {DARK[name]});" for name in LIGHT)
