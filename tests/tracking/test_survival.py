"""The mirror may fail in every way; the ledger stays, and the next `campaign sync` makes it whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.errors import TrackingFailed
from campaign.tracking import owner, store, sync
from tests.tracking import campaigns
from tests.tracking.test_mirror import client_of, runs_of

REPOSITORY = Path(__file__).parents[2]


def python(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


DIES_HALF_WAY = """
import os, signal, sys
from pathlib import Path
from campaign.ledger import open_ledger
from campaign.tracking import sync

ledger = open_ledger(Path(sys.argv[1]), "demo", writable=False)

class Dying:
    def __getattr__(self, name):
        return getattr(ledger, name)
    def path(self, relative):
        os.kill(os.getpid(), signal.SIGKILL)

sync(Dying())
"""


def test_a_mirror_killed_half_way_is_replaced_and_nothing_stays_running(one, root):
    process = python(DIES_HALF_WAY, root)
    process.communicate(timeout=120)
    assert process.returncode == -9
    (half,) = runs_of(root)
    assert half.info.status == "RUNNING" and half.data.tags["campaign.mirror"] == "half"
    assert sync(one) == ["prenorm_fusion-plan-1-decision"]
    (run,) = runs_of(root)
    assert run.info.run_id != half.info.run_id
    assert run.data.tags["campaign.mirror"] == "whole"
    assert runs_of(root, "attributes.status = 'RUNNING'") == []
    assert client_of(root).get_run(half.info.run_id).info.status == "KILLED"


MIRRORS = """
import sys
from pathlib import Path
from campaign.ledger import open_ledger
from campaign.tracking import sync
print(sync(open_ledger(Path(sys.argv[1]), sys.argv[2], writable=False)))
"""


@pytest.mark.slow  # three imports of MLflow and one creation of its store
def test_three_processes_on_a_cold_store_at_once_all_mirror(tmp_path):
    names = ("first", "second", "third")
    for name in names:
        with campaigns.open_ledger(tmp_path, name, writable=True) as ledger:
            campaigns.prenorm(ledger)
    processes = [python(MIRRORS, tmp_path, name) for name in names]
    for process in processes:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert "prenorm_fusion-plan-1-decision" in out
    assert [len(runs_of(tmp_path, name=name)) for name in names] == [1, 1, 1]
    with sqlite3.connect(tmp_path / "runs" / "mlflow.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_full_or_broken_disk_is_a_warning_and_the_next_sync_completes(one, root):
    blocked = root / "runs" / "artifacts"
    blocked.write_text("a file where the folder should be")
    with pytest.raises(TrackingFailed) as failure:
        sync(one)
    assert failure.value.exit_code == 0 and failure.value.remedy == "campaign sync --campaign demo"
    blocked.unlink()
    assert sync(one) == ["prenorm_fusion-plan-1-decision"]
    assert len(runs_of(root)) == 1


def test_a_file_that_is_no_database_is_refused_at_once_with_what_to_do(one, root):
    (root / "runs" / "mlflow.db").write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(TrackingFailed, match="damaged") as failure:
        sync(one)
    assert failure.value.remedy.startswith("mv runs/mlflow.db runs/mlflow.db.old, then campaign sync")


@pytest.mark.parametrize("also", ["SELECT 1", "DROP TABLE trace_tags"], ids=["same tables", "fewer tables"])
def test_a_schema_of_another_mlflow_is_named_as_such(one, root, also):
    with sqlite3.connect(root / "runs" / "mlflow.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        database.execute(also)
    with pytest.raises(TrackingFailed, match="another MLflow version") as failure:
        sync(one)
    assert "mv runs/mlflow.db" in failure.value.remedy


def test_a_store_that_another_process_keeps_busy_is_waited_for_and_then_named(root):
    with store.writing(root):
        with pytest.raises(TrackingFailed, match=r"holds \.mlflow\.lock"), store.writing(root, wait_seconds=0.1):
            pass


@pytest.mark.slow  # MLflow itself waits 20 seconds for a locked database
def test_a_locked_database_is_a_warning_and_the_next_sync_completes(one, root):
    with sqlite3.connect(root / "runs" / "mlflow.db", isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(TrackingFailed, match="locked by another process"):
            sync(one)
        database.execute("ROLLBACK")
    assert sync(one) == ["prenorm_fusion-plan-1-decision"]


def test_a_project_that_moved_does_not_write_into_the_old_place(one, root, tmp_path):
    sync(one)
    moved = tmp_path / "moved"
    shutil.copytree(root, moved)
    with campaigns.open_ledger(moved, campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.prenorm(ledger)
        with pytest.raises(TrackingFailed, match="not in this project") as failure:
            sync(ledger)
    assert "mv runs/mlflow.db" in failure.value.remedy


WITHOUT_MLFLOW = """
import sys
sys.modules["mlflow"] = None
from pathlib import Path
from campaign.errors import TrackingFailed
from campaign.ledger import open_ledger
from campaign.tracking import sync
try:
    sync(open_ledger(Path(sys.argv[1]), "demo", writable=False))
except TrackingFailed as failure:
    print(failure)
"""


def test_mlflow_not_installed_is_a_warning_that_says_how_to_get_it(one, root):
    out, errors = python(WITHOUT_MLFLOW, root).communicate(timeout=60)
    assert "pip install mlflow, then campaign sync" in out, errors
    assert "the decision is in the ledger" in out


LIGHT = """
import sys
import campaign.tracking
print([name for name in ("mlflow", "matplotlib", "pandas", "numpy", "torch", "sqlalchemy") if name in sys.modules])
"""


def test_importing_tracking_imports_nothing_heavy():
    out, errors = python(LIGHT).communicate(timeout=60)
    assert out.strip() == "[]", errors


def test_an_owner_is_gone_only_when_that_very_process_is():
    me = owner.current()
    assert not owner.is_gone(me)
    host, boot, pid, ticks = me.split("|")
    assert owner.is_gone("|".join((host, boot, pid, str(int(ticks) + 1)))), "the number was reused"
    assert owner.is_gone("|".join((host, "another-boot", pid, ticks)))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert owner.is_gone("|".join((host, boot, str(ended.pid), ticks)))
    assert not owner.is_gone("|".join(("elsewhere", boot, pid, "1"))), "another host's process is not ours to judge"
    assert not owner.is_gone("")
