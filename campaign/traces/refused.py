"""Files that come with profiling and cannot be read: each is named, with the command that gives one that can.

This module is a reader that reads nothing. It has no FORMAT, so it is asked after all others.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from campaign.errors import BadInput

FORMAT = ""
HEAD_BYTES = 1 << 16
REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
TORCH = "campaign profile hypothesis=NAME"  # writes a Kineto trace, on CUDA, ROCm and CPU
CAPTURE = "nsys profile -t cuda,nvtx --cuda-graph-trace=node -o profile COMMAND"
_KEY = re.compile(rb'^\{\s*"((?:[^"\\]|\\.){1,80})"\s*:')


@dataclass(frozen=True)
class Foreign:
    """A format: what it is, how it is recognised, and what to type."""

    what: str
    recognised: Callable[[bytes], bool]
    remedy: Callable[[Path], str]


def recognises(head: bytes, path: Path) -> bool:
    """Whether the content is one of the formats known here."""
    return _foreign(head) is not None


def read(path: Path) -> NoReturn:
    """Raises BadInput: what the file is, and the next command."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"\x1f\x8b"):
        head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    found = _foreign(head)
    assert found is not None
    raise BadInput(f"{path}: {found.what}", remedy=found.remedy(path))


def _foreign(head: bytes) -> Foreign | None:
    return next((one for one in FOREIGN if one.recognised(head)), None)


def _starts(*magics: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magics)


def _holds(*texts: bytes) -> Callable[[bytes], bool]:
    return lambda head: any(text in head for text in texts)


def _is(remedy: str) -> Callable[[Path], str]:
    return lambda path: remedy


def _export(path: Path) -> str:
    """The export of a report, which nsys only takes under its own suffix."""
    report = path if path.suffix in REPORT_SUFFIXES else path.with_suffix(".nsys-rep")
    moved = "" if report == path else f"mv {shlex.quote(str(path))} {shlex.quote(str(report))} && "
    out = shlex.quote(str(report.with_suffix(".sqlite")))
    return f"{moved}nsys export --type sqlite --output {out} {shlex.quote(str(report))} && campaign diagnose {out}"


def _unpacked(command: str, suffix: str) -> Callable[[Path], str]:
    """Decompress beside the file, then ask again."""

    def remedy(path: Path) -> str:
        out = path.with_suffix("") if path.suffix == suffix else path.with_suffix(".json")
        return (
            f"{command} {shlex.quote(str(path))} > {shlex.quote(str(out))} && campaign diagnose {shlex.quote(str(out))}"
        )

    return remedy


def _listed(path: Path) -> str:
    return f"python -m zipfile -l {shlex.quote(str(path))}"


def _is_xplane(head: bytes) -> bool:
    """An XSpace message: field 1 holds planes, whose names are of hosts and devices (tsl's xplane.proto)."""
    names = (b"/host:", b"/device:", b"Task Environment")
    return head[:1] == b"\x0a" and any(name in head[:4096] for name in names)


def _is_pickle(head: bytes) -> bool:
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _is_json(head: bytes) -> bool:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return bool(_KEY.match(text)) or text[:1] == b"[" or text[:2] == b"{}"


def _is_markup(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower().startswith((b"<!doctype html", b"<html", b"<?xml", b"<svg"))


def _is_protobuf_trace(head: bytes) -> bool:
    """Perfetto: field 1 of Trace is a packet, whose length leads to the next field 1."""
    if head[:1] != b"\x0a":
        return False
    length, shift, place = 0, 0, 1
    for place in range(1, min(6, len(head))):
        length |= (head[place] & 0x7F) << shift
        shift += 7
        if not head[place] & 0x80:
            break
    after = place + 1 + length
    return 0 < length and head[after : after + 1] == b"\x0a" and not _is_text(head)


def _is_text(head: bytes) -> bool:
    try:
        text = head[: HEAD_BYTES // 2].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < min(len(head), HEAD_BYTES // 2) - 4:  # not a letter that the cut went through
            return False
        text = head[: error.start].decode("utf-8")
    return sum(not (letter.isprintable() or letter in "\r\n\t\x1b\x0c") for letter in text) <= len(text) // 100


# The first that fits is taken.
FOREIGN = (
    Foreign(
        "an Nsight Systems report, which only nsys opens (of the version that recorded it, or newer)",
        lambda head: b"NVIDIA Tegra Profiler Report" in head[:512],
        _export,
    ),
    Foreign(
        "a rocprofv3 JSON, which is not read; torch.profiler records the same kernels on ROCm",
        lambda head: b'"rocprofiler-sdk-tool"' in head[:4096],
        _is(TORCH),
    ),
    Foreign(
        "an XLA profile (xplane.pb, as JAX and TensorFlow write it), which is not read; nsys records the same kernels",
        _is_xplane,
        _is(CAPTURE),
    ),
    Foreign(
        "a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot): allocations, and no times of kernels",
        lambda head: _is_pickle(head) and any(text in head for text in (b"segments", b"device_traces")),
        _is(TORCH),
    ),
    Foreign("a Python pickle, which is never opened", _is_pickle, _is(TORCH)),
    Foreign("a zip archive; give the trace that is in it", _starts(b"PK\x03\x04", b"PK\x05\x06"), _listed),
    Foreign("compressed with zstd, which is not read", _starts(b"\x28\xb5\x2f\xfd"), _unpacked("zstd -dc", ".zst")),
    Foreign("compressed with xz, which is not read", _starts(b"\xfd7zXZ\x00"), _unpacked("xz -dc", ".xz")),
    Foreign("compressed with bzip2, which is not read", _starts(b"BZh"), _unpacked("bzip2 -dc", ".bz2")),
    Foreign(
        "a columnar file (Parquet, Arrow or HDF5), as nsys also exports; its SQLite export is read",
        _starts(b"PAR1", b"ARROW1", b"\x89HDF\r\n"),
        _is("nsys export --type sqlite profile.nsys-rep"),
    ),
    Foreign("a Perfetto trace, which is not read", _is_protobuf_trace, _is(TORCH)),
    Foreign(
        "a TensorBoard event file: scalars and no kernels; traces lie beside it as *.pt.trace.json",
        lambda head: b"brain.Event:" in head[:64],
        _is("campaign diagnose NAME.pt.trace.json"),
    ),
    Foreign("an executable or a library", _starts(b"\x7fELF", b"MZ"), _is(TORCH)),
    Foreign("an image", _starts(b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), _is("campaign diagnose FILE, with a profile")),
    Foreign("a page of markup (HTML, XML); give the profile that it was made of", _is_markup, _is(TORCH)),
    Foreign(
        "JSON, but no trace: a Kineto trace has `traceEvents`, which torch.profiler's export_chrome_trace writes",
        _is_json,
        _is(TORCH),
    ),
    Foreign(
        "the text that ncu or nsys prints, without a table of counters",
        lambda head: _is_text(head) and _holds(b"==PROF==", b"==WARNING==", b"Processing [")(head),
        _is("ncu --import REPORT.ncu-rep --csv --page raw > kernels.csv, or nsys export --type sqlite REPORT.nsys-rep"),
    ),
    Foreign(
        "text, and no table of Nsight Compute (whose columns have `Kernel Name`)",
        _is_text,
        _is("ncu --import REPORT.ncu-rep --csv --page raw > kernels.csv"),
    ),
)
