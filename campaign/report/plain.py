"""A person's text made safe for a terminal and a page: what would steer either is shown as its escape, `\\x1b`."""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, line and paragraph separators, and what turns the direction of writing.
# And half surrogates: what Python makes of a file name that is no UTF-8, and what no output can encode.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def plain(text: str) -> str:
    """`text` with its line breaks and tabs, every other control character escaped."""
    return text if text.isprintable() else STEERING.sub(_escaped, text)


def as_json_escapes(text: str) -> str:
    """JSON with the same characters as JSON escapes, so that it means the same."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
