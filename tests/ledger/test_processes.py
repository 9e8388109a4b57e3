from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import campaign
from campaign.ledger import Journal
from tests.ledger.files import STAMP, filled, ids

ROOT = Path(campaign.__file__).parent.parent
APPENDING = """
import itertools, pathlib, sys
from campaign.ledger import Journal, Stamp
journal = Journal(pathlib.Path(sys.argv[1]))
name, most = sys.argv[2], int(sys.argv[3])
for n in itertools.islice(itertools.count(), most or None):
    journal.append("note", f"{name}-{n}", {"text": "x" * (n % 7 * 1000)}, Stamp("h"))
    print(f"{name}-{n}", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def test_a_full_disk_is_an_error_and_leaves_the_ledger_whole(path: Path) -> None:
    filled(path, 3)
    before = path.read_bytes()
    # The kernel's limit on file sizes refuses a write part of the way, as a full disk does.
    code = f"""
import pathlib, resource, signal, sys
from campaign.errors import CampaignError
from campaign.ledger import Journal, Stamp
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 100}, resource.RLIM_INFINITY))
journal = Journal(pathlib.Path({str(path)!r}))
try:
    journal.append("note", "big", {{"text": "x" * 5000}}, Stamp("h"))
except CampaignError as error:
    print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("then line", journal.append("note", "small", {{}}, Stamp("h")).line)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "cannot write the ledger" in done.stdout and "try: df -h" in done.stdout
    assert "then line 4" in done.stdout
    assert path.read_bytes().startswith(before) and ids(path) == ["e1", "e2", "e3", "small"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != len(before) + 100


def test_every_acknowledged_entry_survives_kill_9(path: Path) -> None:
    acknowledged: list[str] = []
    for attempt in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(path), f"run{attempt}", "0"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        for _ in range(5 + 3 * attempt):
            acknowledged.append(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split()  # what was printed whole before the kill
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    found = ids(path)
    assert len(acknowledged) >= 75 and set(acknowledged) <= set(found)
    assert len(found) <= len(acknowledged) + 6  # each run may have written one that it could not acknowledge
    Journal(path).append("note", "after", {}, STAMP)
    assert ids(path)[-1] == "after"


def test_four_processes_append_at_once_without_losing_or_mixing_lines(path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(path), f"p{n}", "25"], stdout=subprocess.DEVNULL, cwd=ROOT
        )
        for n in range(4)
    ]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert sorted(ids(path)) == sorted(f"p{n}-{i}" for n in range(4) for i in range(25))


def test_a_reader_waits_for_a_line_that_is_being_written(path: Path) -> None:
    filled(path, 2)
    whole = path.read_bytes()
    script = "import pathlib,sys; from campaign.ledger import Journal; " + (
        "print(sum(1 for _ in Journal(pathlib.Path(sys.argv[1])).entries(verify=False)))"
    )
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.ftruncate(file.fileno(), len(whole) - 30)  # as if the writer were half-way through line 2
        reader = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        file.seek(0, os.SEEK_END)
        file.write(whole[-30:])
        file.flush()
    assert reader.communicate()[0].strip() == "2"


def test_a_listing_imports_nothing_heavy(path: Path) -> None:
    filled(path)
    code = f"""
import pathlib, sys
from campaign.ledger import Journal
assert len(list(Journal(pathlib.Path({str(path)!r})).entries({{"decision", "revoked"}}, verify=False))) == 2
print(" ".join(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-X", "frozen_modules=on", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    heavy = {
        "torch",
        "numpy",
        "pandas",
        "mlflow",
        "hydra",
        "git",
        "dataclasses",
        "inspect",
        "campaign.records",
    }
    assert "campaign.ledger.journal" in loaded and not loaded & heavy
