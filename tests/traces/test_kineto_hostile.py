"""Files made to hurt: read or refused in bounded memory, each in a process of its own."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.traces.apart import PEAK
from tests.traces.kineto_files import kernel, written

A, B = (json.dumps(kernel(name, ts, 1)) for name, ts in (("a", 1), ("b", 3)))


HOSTILE = f"""{PEAK}
from campaign.errors import BadInput
from campaign.traces import kineto
try:
    timeline = kineto.read(Path(sys.argv[1]))
    said = [notice.code for notice in timeline.notices]
except BadInput as error:
    said = str(error)
print(peak_kib() // 1024, said)
"""


def read_apart(path: Path) -> tuple[int, str]:
    """Peak MiB of a process that reads the file, and what it said."""
    limit = 2 << 30
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, str(path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    peak, _, said = done.stdout.strip().partition(" ")
    return int(peak), said


@pytest.mark.parametrize("where", ["name", "skipped", "unclosed"])
def test_a_string_of_100_megabytes_is_refused_in_bounded_memory(tmp_path, where):
    long = "x" * 100_000_000
    event = {"name": A.replace('"a"', f'"{long}"'), "skipped": A.replace('"correlation": 1', f'"note": "{long}"')}
    text = event.get(where, A[:-10] + '"' + long)
    peak, said = read_apart(written(tmp_path, f'{{"traceEvents":[{A},{text},{B}]}}'))
    assert "no end of an event within" in said and f"from offset {16 + len(A) + 1}" in said
    assert peak < 250


@pytest.mark.parametrize("filling", [b"\0", b" ", b"[", b'"x', b"{},"])
def test_a_gzip_bomb_is_read_or_refused_in_bounded_memory(tmp_path, filling):
    path = tmp_path / "bomb.json.gz"
    block = filling * (1_000_000 // len(filling))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents":[')
        for _ in range(60):
            file.write(block)
    peak, said = read_apart(path)
    assert path.stat().st_size < 2_000_000 and peak < 250
    assert "offset 16" in said or "truncated" in said


def test_millions_of_different_names_are_read_in_bounded_memory(tmp_path):
    path = tmp_path / "names.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents":[')
        for place in range(60_000):
            file.write(A.replace('"a"', f'"{place:06d}{"n" * 2000}"') + ",")
        file.write(A + "]}")
    peak, said = read_apart(path)
    assert "many_names" in said and peak < 250


@pytest.mark.parametrize("fault", ['"\x01",' * 4_000_000, '{"a":"\x01"},' * 300_000])
def test_an_event_of_megabytes_full_of_faults_is_left_out_in_bounded_memory(tmp_path, fault):
    faulty = f'{{"name":"\x01","args":{{"list":[{fault}{{}},{{}}]}}}}'
    peak, said = read_apart(written(tmp_path, f'{{"traceEvents":[{A},{faulty},{B}]}}'))
    assert "events_lost" in said or "more than 10,000 events cannot be read" in said
    assert peak < 250
