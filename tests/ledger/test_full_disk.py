"""A disk that is really full: a small tmpfs in a mount namespace of the test's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import campaign

ROOT = Path(campaign.__file__).parent.parent
SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
FILLING = """
import itertools, os, pathlib, sys
from campaign.errors import LedgerUnwritable
from campaign.ledger import open_ledger

root = pathlib.Path(sys.argv[1])
ballast = root / "ballast"
ballast.write_bytes(b"x" * 64 * 1024)

def until_refused(act):
    for number in itertools.count():
        try:
            act(number)
        except LedgerUnwritable as error:
            print(number > 0, error.exit_code, str(error).replace("\\n", " "))
            return number

ledger = open_ledger(root, "demo", writable=True)
path = ledger.inflight("r1")
path.write_text("{}\\n")
ledger.append("note", "before", {})
kept = until_refused(lambda n: ledger.keep(str(n).encode() * 2000, ".log"))
filler = root / "filler"
with filler.open("wb", buffering=0) as file:
    try:
        while file.write(b"x"):
            pass
    except OSError:
        pass
written = until_refused(lambda n: ledger.append("note", f"n{n}", {"text": "x" * 500}))
filler.unlink()
ballast.unlink()
ledger.close()
with open_ledger(root, "demo", writable=True) as ledger:
    print(str(ledger.notices), len(ledger.recover_inflight()))
    ledger.append("note", "after", {})
    print(ledger.keep(b"more" * 2000, ".log")[:4])
    ids = [entry.id for entry in ledger.store.entries({"note"})]
    print(ids[: written + 1] == ["before", *(f"n{n}" for n in range(written))], ids[written + 2 :])
    print(len(list(ledger.path("raw").iterdir())) - kept)
"""


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """The words that run a command with a tmpfs of 256 KiB at `tmp_path`."""
    words = [*SPACE, "sh", "-c", 'mount -t tmpfs -o size=256k none "$0" && exec "$@"', str(tmp_path)]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespace in which to mount a tmpfs")
    return words


def test_a_full_disk_ends_loudly_and_once_there_is_room_the_ledger_goes_on(tmp_path: Path, small: list[str]) -> None:
    command = [*small, sys.executable, "-c", FILLING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    raw, line, opened, kept, notes, files = done.stdout.splitlines()
    assert raw.startswith("True 3 cannot write ") and "No space left on device" in raw and "try: df -h" in raw
    assert line.startswith("True 3 cannot write the ledger ") and "No space left on device; nothing after" in line
    assert opened == "[] 1"  # the refused line left no torn tail; the round in flight is kept with a note
    assert kept == "raw/"
    assert notes == "True ['after']"
    assert files == "2"  # all that were acknowledged, the round and the one more: nothing half written
