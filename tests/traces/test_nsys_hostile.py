"""Exports that are damaged or foreign: a clear error that names the table, or what is right of them."""

from __future__ import annotations

import random
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.diagnosis.busy import sweep
from campaign.errors import EXIT_BAD_INPUT, BadInput
from campaign.traces import _nsys_file, nsys
from tests.traces.exports import busy_and_span, codes, edited, export
from tests.traces.nsys_files import Kernel, Runtime, write_nsys


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
    assert found["bad_times"].endswith(f": 5 in {kernel}")
    assert found["bad_durations"].endswith(f": 1 in {kernel}")


def test_views_in_place_of_tables_are_read(tmp_path: Path) -> None:
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = edited(
        export(tmp_path / "a.sqlite"),
        f"ALTER TABLE {kernel} RENAME TO hidden",
        f'CREATE VIEW {kernel} AS SELECT start, "end", deviceId, streamId, demangledName FROM hidden WHERE start > 20',
    )
    assert busy_and_span(nsys.read(path)) == (20, 30)


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
