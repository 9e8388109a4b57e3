"""Names that announce a secret, and their values out of what is written down."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_WORDS = (
    r"secrets?|secret_\w+|passw(?:or)?d|pgpassword|sshpass|passphrase|pwd|credentials?|api_?key|access_?key(?:_id)?|private_?key|"
    r"(?:\w+_)?(?:auth|access|hf|api|github|gh|gitlab|wandb|bearer|refresh|session|personal|hub|hugging_?face)_?token"
)
_NAME = re.compile(rf"(?:^|[_.-])(?:{_WORDS})$", re.IGNORECASE)
# A variable of the environment has nobody else to mean by these; a flag may be `token` or `key`.
_VARIABLE = re.compile(r"(?:^|_)(?:TOKEN|KEY|PASS|PAT|AUTH|COOKIE|DSN)$", re.IGNORECASE)
_SET = re.compile(r"(?:^|[\s;&|(])(?:--?)?(?P<name>[A-Za-z_][\w.-]*)=[^\s;&|)]")  # also within a shell's text
_FLAG = re.compile(r"--?(?P<name>[A-Za-z_][\w.-]*)")
_ADDRESS = re.compile(r"[a-z][\w+.-]*://[^/\s:@]*:[^/\s@]+@")
KEPT_OF_A_LOG = 32 << 20
SHORTEST_VALUE = 6  # a shorter one may be any word of a log


def secret_name(name: str) -> bool:
    """Whether a flag or a config key of this name usually holds a secret."""
    return bool(_NAME.search(name.replace("-", "_")))


def secret_variable(name: str) -> bool:
    """Whether an environment variable of this name usually holds a secret."""
    return name != "PWD" and (secret_name(name) or bool(_VARIABLE.search(name)))  # a shell's working directory


def secret_words(words: Sequence[str]) -> list[str]:
    """What the words of a command line hold that is a secret by its name: `--api-key=...`, `--api-key ...`, `KEY=...`
    within a shell's text, or an address with a password."""
    found = []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        found += [one["name"] for one in _SET.finditer(word) if secret_name(one["name"])]
        flag = _FLAG.fullmatch(word)
        if flag and after and not after.startswith("-") and secret_name(flag["name"]):
            found.append(flag["name"])
        if _ADDRESS.search(word):
            found.append("address with a password")
    return found


def redacted(text: bytes, environment: Mapping[str, str] | None = None) -> bytes:
    """`text` with the values of secret variables of `environment` (default: this process's) replaced by their names."""
    for name, value in sorted(
        _values(os.environ if environment is None else environment), key=lambda one: -len(one[1])
    ):
        text = text.replace(os.fsencode(value), b"[" + name.encode() + b"]")
    return text


def redact_file(path: Path, environment: Mapping[str, str], kept: int = KEPT_OF_A_LOG) -> None:
    """The same of a whole file. Of one with more than twice `kept` bytes only so many stay at each end: a script may
    have written more than fits into memory."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        text = file.read(2 * kept)
        if size > 2 * kept:
            file.seek(size - kept)
            # Cut at lines, so that no half of a secret is left, which nothing would find.
            head, tail = text[:kept].rpartition(b"\n")[0], file.read(kept).partition(b"\n")[2]
            text = head + f"\n[campaign: {size - len(head) - len(tail)} bytes left out]\n".encode() + tail
        file.seek(0)
        file.write(redacted(text, environment))
        file.truncate()


def _values(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        if secret_variable(name) and len(value) >= SHORTEST_VALUE:
            yield name, value
