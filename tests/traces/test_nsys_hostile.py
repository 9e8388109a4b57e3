"""Exports that are damaged, foreign, or made to do harm: a clear error that names the table, or what is right of it."""

from __future__ import annotations

import random
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.diagnosis.busy import sweep
from campaign.errors import EXIT_BAD_INPUT, BadInput
from campaign.traces import _nsys_file, nsys
from campaign.traces.timeline import LONGEST_NAME, Call, Timeline
from tests.traces.nsys_files import Kernel, Memcpy, Nvtx, Runtime, write_nsys

Edit = Callable[[sqlite3.Connection], object]


def edited(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> Path:
    connection = sqlite3.connect(path)
    for one in statements:
        connection.execute(one) if isinstance(one, str) else connection.execute(*one)
    connection.commit()
    connection.close()
    return path


def export(path: Path) -> Path:
    """Three kernels on one device: busy 30, range 50."""
    return write_nsys(
        path,
        kernels=[Kernel("first", 10, 20, 1), Kernel("second", 30, 40, 2), Kernel("third", 50, 60, 3)],
        runtime=[Runtime("cudaLaunchKernel", n, n + 1, n) for n in (1, 2, 3)],
        nvtx=[Nvtx("step", 0, 9)],
    )


def busy_and_span(timeline: Timeline) -> tuple[int, int]:
    (device,) = sweep(timeline, lambda name, kind: kind.name).devices
    return device.busy_ns, device.span_ns


def codes(timeline: Timeline) -> dict[str, str]:
    return {one.code: one.text for one in timeline.notices}


def test_other_sqlite_files_are_refused_with_their_tables(tmp_path: Path) -> None:
    path = edited(tmp_path / "a.db", "CREATE TABLE simple (n)", 'CREATE TABLE "a\'; DROP TABLE x; --" (n)')
    with pytest.raises(BadInput, match="no Nsight Systems export") as caught:
        nsys.read(path)
    assert "'simple'" in caught.value.message and "DROP TABLE" in caught.value.message
    assert caught.value.exit_code == EXIT_BAD_INPUT


def test_mlflow_database_is_called_what_it_is(tmp_path: Path) -> None:
    path = edited(tmp_path / "mlflow.db", "CREATE TABLE alembic_version (n)", "CREATE TABLE runs (n)")
    with pytest.raises(BadInput, match="MLflow"):
        nsys.read(path)


def test_empty_database_has_no_tables(tmp_path: Path) -> None:
    path = edited(tmp_path / "a.db", "CREATE TABLE t (n)", "DROP TABLE t")
    with pytest.raises(BadInput, match="Its tables are none"):
        nsys.read(path)


def test_cut_file_is_refused_with_its_sizes(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite")
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[: whole - 100])
    with pytest.raises(BadInput, match=f"it has {whole - 100:,} bytes of {whole:,}") as caught:
        nsys.read(path)
    assert caught.value.remedy.startswith("nsys export --type sqlite --force-overwrite true")


def test_file_of_the_magic_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(_nsys_file.MAGIC)
    with pytest.raises(BadInput, match="the file is cut"):
        nsys.read(path)


def test_damaged_table_is_named_with_what_was_read_before(tmp_path: Path) -> None:
    kernels = [Kernel("k", 10 * n, 10 * n + 5, n + 1) for n in range(4_000)]
    path = write_nsys(tmp_path / "a.sqlite", kernels, runtime=[Runtime("cudaLaunchKernel", 0, 1, 1)])
    connection = sqlite3.connect(path)
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.execute("CREATE TABLE later (n)")
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name LIKE '%KIND_KERNEL'").fetchone()[0]
    connection.close()
    raw = bytearray(path.read_bytes())
    raw[(root - 1) * page_size : root * page_size] = bytes(page_size)
    path.write_bytes(bytes(raw))
    with pytest.raises(BadInput, match=r"CUPTI_ACTIVITY_KIND_KERNEL cannot be read.*malformed") as caught:
        nsys.read(path)
    assert "read before it: CUPTI_ACTIVITY_KIND_RUNTIME (1 rows)" in caught.value.message


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_ends_in_an_answer_or_in_an_error_of_ours(tmp_path: Path, seed: int) -> None:
    path = export(tmp_path / "a.sqlite")
    draw = random.Random(seed)
    raw = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 60)):
        raw[draw.randrange(16, len(raw))] = draw.randrange(256)
    path.write_bytes(bytes(raw))
    try:
        timeline = nsys.read(path)
    except BadInput as error:
        assert str(path) in error.message
    else:
        sweep(timeline, lambda name, kind: kind.name)


def test_table_without_times_is_named_with_the_columns_it_has(tmp_path: Path) -> None:
    path = edited(export(tmp_path / "a.sqlite"), 'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME "end" TO finish')
    with pytest.raises(BadInput, match=r"CUPTI_ACTIVITY_KIND_KERNEL has no column end .*'finish'"):
        nsys.read(path)


@pytest.mark.parametrize(
    ("table", "code"),
    [("StringIds", "unnamed"), ("TARGET_INFO_GPU", ""), ("META_DATA_EXPORT", ""), ("NVTX_EVENTS", "")],
)
def test_missing_table_costs_only_what_it_holds(tmp_path: Path, table: str, code: str) -> None:
    timeline = nsys.read(edited(export(tmp_path / "a.sqlite"), f"DROP TABLE {table}"))
    assert busy_and_span(timeline) == (30, 50)
    assert not code or code in codes(timeline)


def test_kernels_without_names_stay_apart(tmp_path: Path) -> None:
    timeline = nsys.read(edited(export(tmp_path / "a.sqlite"), "DROP TABLE StringIds"))
    names = {timeline.names[row["name"]] for batch in timeline.events.batches() for row in batch}
    assert len(names) == 3 and all(name.startswith("kernel 1") for name in names)


@pytest.mark.parametrize("column", ["deviceId", "streamId", "contextId", "globalPid", "correlationId", "graphNodeId"])
def test_missing_column_costs_only_what_it_holds(tmp_path: Path, column: str) -> None:
    path = edited(export(tmp_path / "a.sqlite"), f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    assert busy_and_span(nsys.read(path)) == (30, 50)


def test_text_and_nulls_in_integer_columns_are_left_out_and_counted(tmp_path: Path) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = edited(
        export(tmp_path / "a.sqlite"),
        f"ALTER TABLE {kernel} RENAME TO old",
        f"CREATE TABLE {kernel} (start, end, deviceId, streamId, correlationId, demangledName)",
        f"INSERT INTO {kernel} SELECT start, end, deviceId, streamId, correlationId, demangledName FROM old",
        f"INSERT INTO {kernel} VALUES ('soon', 5, 0, 7, 1, 100), (NULL, 5, 0, 7, 1, 100), (1.5, 5, 0, 7, 1, 100)",
        f"INSERT INTO {kernel} VALUES (9223372036854775807, 5, 0, 7, 1, 100), (x'00', x'01', 0, 7, 1, 100)",
        f"INSERT INTO {kernel} VALUES (35, 'later', '0', 'seven', 'none', 'kernel')",
    )
    timeline = nsys.read(path)
    assert busy_and_span(timeline) == (30, 50)
    found = codes(timeline)
    assert found["bad_times"].startswith(f"5 rows of {kernel}")
    assert found["bad_durations"].startswith(f"1 rows of {kernel}")


def test_views_in_place_of_tables_are_read(tmp_path: Path) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = edited(
        export(tmp_path / "a.sqlite"),
        f"ALTER TABLE {kernel} RENAME TO hidden",
        f'CREATE VIEW {kernel} AS SELECT start, "end", deviceId, streamId, demangledName FROM hidden WHERE start > 20',
    )
    assert busy_and_span(nsys.read(path)) == (20, 30)


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"])
def test_view_without_an_end_is_stopped_and_named(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nsys_file, "INSTRUCTIONS", 5_000_000)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    select = 'SELECT i AS start, i + 1 AS "end", 0 AS deviceId, 7 AS streamId, 59 AS eventType FROM n'
    path = edited(export(tmp_path / "a.sqlite"), f"DROP TABLE {table}", f"CREATE VIEW {table} AS {endless} {select}")
    with pytest.raises(BadInput, match=f"{table} cannot be read.*does not come to an end"):
        nsys.read(path)


def test_view_over_what_is_not_there_is_named(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"), "DROP TABLE NVTX_EVENTS", "CREATE VIEW NVTX_EVENTS AS SELECT * FROM gone"
    )
    with pytest.raises(BadInput, match=r"NVTX_EVENTS cannot be read.*gone"):
        nsys.read(path)


def test_view_cannot_reach_functions_with_effects(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    path = edited(
        export(tmp_path / "a.sqlite"),
        f"CREATE VIEW {table} AS SELECT load_extension('evil') AS start, 1 AS \"end\", 0 AS deviceId",
    )
    with pytest.raises(BadInput, match=f"{table} cannot be read"):
        nsys.read(path)


def test_damage_beside_the_events_is_a_notice(tmp_path: Path) -> None:
    view = "CREATE VIEW DIAGNOSTIC_EVENT AS SELECT severity, text FROM gone"
    timeline = nsys.read(edited(export(tmp_path / "a.sqlite"), view))
    assert busy_and_span(timeline) == (30, 50)
    assert "DIAGNOSTIC_EVENT cannot be read" in codes(timeline)["damaged_table"]


def test_triggers_do_nothing(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"),
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; END",
    )
    assert busy_and_span(nsys.read(path)) == (30, 50)


def test_names_of_columns_and_tables_are_quoted(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"),
        'CREATE TABLE "x""; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; --" (n)',
        'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN "a"", b"" FROM x; --" INTEGER',
    )
    assert busy_and_span(nsys.read(path)) == (30, 50)


def test_hundred_megabytes_of_name_take_no_memory(tmp_path: Path) -> None:
    path = edited(
        export(tmp_path / "a.sqlite"),
        ("UPDATE StringIds SET value = ? WHERE value = 'second'", ("x" * 100_000_000,)),
        ("UPDATE StringIds SET value = ? WHERE value = 'third'", ("y" * 10_000,)),
    )
    code = (
        "import resource; from pathlib import Path; from campaign.traces import nsys;"
        f"before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; t = nsys.read(Path({str(path)!r}));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, max(map(len, t.names)), len(t.events))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    grown_kib, longest, events = map(int, out.split())
    assert (longest, events) == (LONGEST_NAME, 3)
    assert grown_kib < 20_000
    assert codes(nsys.read(path))["long_names"].startswith("2 names")


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


def test_write_ahead_log_with_changes_is_refused_and_the_remedy_mends_it(tmp_path: Path) -> None:
    path = export(tmp_path / "a b.sqlite")
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode=WAL');"
        "c.execute('DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start > 40'); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    with pytest.raises(BadInput, match=r"a b\.sqlite-wal beside it holds changes") as caught:
        nsys.read(path)
    command = shlex.split(caught.value.remedy)
    assert command[0] == "python"
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert busy_and_span(nsys.read(path)) == (20, 30)


def test_path_with_signs_of_a_uri_is_opened(tmp_path: Path) -> None:
    assert busy_and_span(nsys.read(export(tmp_path / "a?mode=memory#50%.sqlite"))) == (30, 50)


def test_memory_stays_flat_as_rows_grow(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = write_nsys(
            tmp_path / "a.sqlite",
            kernels=(Kernel(f"k{n % 9}", 10 * n, 10 * n + 5, n + 1) for n in range(rows)),
            runtime=(Runtime("cudaLaunchKernel", 10 * n - 9, 10 * n - 8, n + 1) for n in range(rows)),
            nvtx=(Nvtx("step", 1000 * n, 1000 * n + 900) for n in range(rows // 100)),
        )
        code = (
            "import resource; from pathlib import Path; from campaign.traces import _nsys_file, nsys, spool;"
            "spool.Spool.__init__.__defaults__ = (20_000,); _nsys_file.ROWS_ASIDE = 20_000;"
            f"nsys.read(Path({str(path)!r})); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    few, many = peak(60_000), peak(240_000)
    assert many < few + 15_000  # KiB; the rows alone are 9 MiB more in each of five spools
