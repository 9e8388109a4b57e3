"""`campaign.measure` as a person calls it: from a script, from a prompt, with an interrupt in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import REPOSITORY
from tests.own.quick import SETTINGS


@pytest.fixture(autouse=True)
def leases(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("leases")))


SCRIPT = """
import campaign
from beside import factor

def slow():
    return float(sum(i for i in range(3 * factor)))

def fast():
    return float(sum(i for i in range(3 * factor)))

found = campaign.measure(slow, fast, protocol="quick", pairs=2, threads=2, settings=%r)
print(repr(found))
print(dict(found.evidence.plan.control.config["sources"]).keys())
"""


@pytest.mark.parametrize("way", ["script", "typed"])
def test_a_script_without_a_guard_and_what_is_typed_at_a_prompt_are_measured(tmp_path, way):
    (tmp_path / "beside.py").write_text("factor = 100\n")
    (tmp_path / "script.py").write_text(SCRIPT % SETTINGS)
    typed = way == "typed"
    done = subprocess.run(
        [sys.executable, *(["-"] if typed else ["script.py"])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        input=(SCRIPT % SETTINGS) if typed else None,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<Comparison treatment against control: inconclusive"), done.stdout
    assert "screen round 2 of 2" in done.stderr, "progress is beside what the script prints"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside.py", "script.py"]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(pid):
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            found += [int(child), *descendants(child)]
    return found


def test_an_interrupt_ends_every_trial(tmp_path):
    (tmp_path / "script.py").write_text(
        "import time, campaign\ndef wait():\n    time.sleep(0.05)\ncampaign.measure(wait, wait, name=('one', 'two'))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        for line in process.stderr:
            if "screen round 1" in line:
                break
        until = time.monotonic() + 30
        while len(trials := descendants(process.pid)) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    finally:
        process.kill()
        process.wait()
    assert "KeyboardInterrupt" in said
    # One that was being started at that moment has itself killed with its parent, by the kernel.
    until = time.monotonic() + 30
    while any(map(alive, trials)):
        assert time.monotonic() < until
        time.sleep(0.01)
