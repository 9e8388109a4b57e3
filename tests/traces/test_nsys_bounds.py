"""Exports made to take all memory or time: they get neither."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from campaign.errors import BadInput
from campaign.traces import _nsys_file, nsys
from campaign.traces.timeline import LONGEST_NAME, Call
from tests.traces.apart import PEAK
from tests.traces.exports import busy_and_span, codes, edited, export
from tests.traces.nsys_files import Kernel, Memcpy, Nvtx, Runtime, write_nsys

READ = f"{PEAK}from campaign.traces import _nsys_file, nsys, spool\n"


def told_apart(code: str, path: Path) -> list[int]:
    """The numbers that a process of its own prints: READ, then `code`, with the file's path in sys.argv[1]."""
    line = [sys.executable, "-c", READ + code, str(path)]
    return [int(word) for word in subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()]


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"])
def test_view_without_an_end_is_stopped_and_named(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nsys_file, "INSTRUCTIONS", 5_000_000)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    select = 'SELECT i AS start, i + 1 AS "end", 0 AS deviceId, 7 AS streamId, 59 AS eventType FROM n'
    path = edited(export(tmp_path / "a.sqlite"), f"DROP TABLE {table}", f"CREATE VIEW {table} AS {endless} {select}")
    with pytest.raises(BadInput, match=f"{table} cannot be read.*does not come to an end"):
        nsys.read(path)


def test_hundred_megabytes_of_name_take_no_memory(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"),
        ("UPDATE StringIds SET value = ? WHERE value = 'second'", ("x" * 100_000_000,)),
        ("UPDATE StringIds SET value = ? WHERE value = 'third'", ("y" * 10_000,)),
    )
    code = "before = peak_kib(); t = nsys.read(Path(sys.argv[1]))\n"
    code += "print(peak_kib() - before, max(map(len, t.names)), len(t.events))"
    grown_kib, longest, events = told_apart(code, path)
    assert (longest, events) == (LONGEST_NAME, 3)
    assert grown_kib < 20_000
    assert codes(nsys.read(path))["long_names"].endswith("cut: 2")


def test_hundred_megabytes_in_a_range_cost_its_name_and_nothing_else(tmp_path: Path) -> None:
    path = edited(
        write_nsys(
            tmp_path / "a.sqlite",
            kernels=[Kernel("k", 10, 20, 1)],
            runtime=[Runtime("cudaLaunchKernel", 1, 2, 1)],
            nvtx=[Nvtx("own", 0, 5), Nvtx("kept", 0, 6, registered=True)],
        ),
        ("UPDATE NVTX_EVENTS SET text = ? WHERE text = 'own'", ("x" * 100_000_000,)),
    )
    timeline = nsys.read(path)
    rows = [row for batch in timeline.calls.batches() for row in batch if row["kind"] == Call.ANNOTATION]
    assert {timeline.names[row["name"]] for row in rows} == {"kept", "(range without a name)"}
    assert len(timeline.marks) == 2
    assert "too long to read" in codes(timeline)["long_names"]


def test_as_many_names_as_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from campaign.traces import _nsys_names

    monkeypatch.setattr(_nsys_names.Names.__init__, "__defaults__", (10,))
    nvtx = [Nvtx(f"request {n}", n, n + 1) for n in range(50)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", [Kernel("k", 1, 2)], nvtx=nvtx))
    assert len(timeline.names) == 11
    assert "many_names" in codes(timeline)
    assert len(timeline.calls) == 50


def test_ids_beyond_every_range_do_not_overflow(tmp_path: Path) -> None:
    largest = 2**63 - 1
    kernels = [Kernel("k", 10, 20, largest, device=largest, stream=largest, context=-1), Kernel("k", 30, 40, -5)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, [Memcpy(50, 60, largest, kind=99, count=largest)]))
    assert busy_and_span(timeline) == (30, 50)
    rows = [row for batch in timeline.events.batches() for row in batch]
    assert [int(row["correlation"]) for row in rows] == [-1, -1, -1]
    assert 0 < int(rows[2]["bytes"]) <= largest
    assert "stray_device" in codes(timeline)


def test_thousands_of_devices_become_one(tmp_path: Path) -> None:
    kernels = [Kernel("k", 10 * n, 10 * n + 5, device=n * 2_000) for n in range(1, 3_000)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels))
    assert [(one.ordinal, one.name) for one in timeline.devices] == [(-1, "unknown device")]
    assert busy_and_span(timeline)[0] == 2_999 * 5


def test_names_that_are_no_utf8_are_read(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"), "UPDATE StringIds SET value = CAST(x'6bff6b' AS TEXT) WHERE value = 'second'"
    )
    assert "k\ufffdk" in nsys.read(path).names


@pytest.mark.slow
def test_memory_stays_flat_as_rows_grow(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = write_nsys(
            tmp_path / "a.sqlite",
            kernels=(Kernel(f"k{n % 9}", 10 * n, 10 * n + 5, n + 1) for n in range(rows)),
            runtime=(Runtime("cudaLaunchKernel", 10 * n - 9, 10 * n - 8, n + 1) for n in range(rows)),
            nvtx=(Nvtx("step", 1000 * n, 1000 * n + 900) for n in range(rows // 100)),
        )
        code = "spool.Spool.__init__.__defaults__ = (20_000,); _nsys_file.ROWS_ASIDE = 20_000\n"
        (found,) = told_apart(code + "nsys.read(Path(sys.argv[1])); print(peak_kib())", path)
        return found

    few, many = peak(60_000), peak(240_000)
    assert many < few + 15_000  # KiB; the rows alone are 9 MiB more in each of five spools
