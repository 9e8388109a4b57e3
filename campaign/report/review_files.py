"""A report in a folder: the page and its figures, each written whole or not at all. A file that is there already is
replaced only where `campaign report` made it; every file that it makes says so near its beginning."""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from campaign.errors import BadInput
from campaign.report.review_page import MARK

INDEX = "index.html"
FIGURES = "figures"
ELSEWHERE = "--out DIR, another folder"
HEAD = 4096  # bytes of a file that are read for the mark
HEADER = 33  # bytes of a PNG before its second chunk
# Of these `main` says that the disk is full or failing; every other error is about the folder that was asked for.
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def marked_svg(text: str) -> bytes:
    """An SVG file's text with the mark in a comment."""
    return text.replace("<svg ", f"<!-- {MARK} -->\n<svg ", 1).encode()


def marked_png(data: bytes) -> bytes:
    """A PNG with the mark in a text chunk."""
    body = b"tEXtComment\0" + MARK.encode("latin-1")
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return data[:HEADER] + chunk + data[HEADER:]


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Raises BadInput where a file of these names within `folder` is there and not ours, and where the folder cannot be
    made or written. Cheap: ask before drawing anything."""
    there = next(one for one in (folder / FIGURES, folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "cannot be written to" if there.is_dir() else "is no folder"
        raise BadInput(f"cannot write the report into {folder}: {there} {why}", remedy=ELSEWHERE)
    for name in names:
        _check_ours(folder / name)


def write_report(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files (paths within `folder`, which is made) and remove figures of an older report that are none any
    more. Raises BadInput as `check_folder`, before anything is written, and where the folder refuses a file."""
    check_folder(folder, files)
    passing: dict[Path, Path] = {}
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            target = folder / name
            passing[target] = target.with_name(f".{target.name}.{os.getpid()}")
            passing[target].write_bytes(data)
        for target in sorted(passing, key=lambda path: path.name == INDEX):  # the page when all that it names is there
            os.replace(passing.pop(target), target)
        _remove_old(folder, files)
    except OSError as error:
        if error.errno in OF_THE_DISK:
            raise
        raise BadInput(
            f"cannot write the report into {folder}: {error.strerror or error}",
            remedy=ELSEWHERE,
        ) from error
    finally:
        for left in passing.values():
            with contextlib.suppress(OSError):
                left.unlink()


def _check_ours(path: Path) -> None:
    if os.path.lexists(path):
        try:
            ours = _ours(path)
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}", remedy=ELSEWHERE) from error
        if not ours:
            raise BadInput(
                f"{path} is there and was not made by campaign report: it is left as it is",
                remedy=ELSEWHERE,
            )


def _ours(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(HEAD)


def _remove_old(folder: Path, files: Mapping[str, bytes]) -> None:
    for path in sorted((folder / FIGURES).iterdir()):
        if path.suffix in (".svg", ".png") and f"{FIGURES}/{path.name}" not in files and _ours(path):
            path.unlink()
