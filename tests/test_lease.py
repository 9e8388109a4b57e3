from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import campaign
from campaign.errors import CampaignError, LeaseHeld
from campaign.lease import device_key, hold

ROOT = Path(campaign.__file__).parent.parent

HOLDING = """
import pathlib, sys
from campaign.lease import hold
with hold("cpu", holder="nightly", folder=pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path):
    """A process that holds the cpu until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def test_a_second_campaign_is_refused_and_told_who_holds_the_device(tmp_path: Path, other: subprocess.Popen) -> None:
    with pytest.raises(LeaseHeld) as caught, hold("cpu", folder=tmp_path):
        raise AssertionError("both hold the device")
    assert re.search(
        rf"process {other.pid} \(campaign 'nightly'\) since \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(caught.value)
    )
    assert caught.value.remedy == "lease.wait_seconds=600" and caught.value.exit_code == 2


def test_a_second_campaign_waits_until_the_first_ends(tmp_path: Path, other: subprocess.Popen) -> None:
    told: list[str] = []

    def end_the_other(text: str) -> None:
        told.append(text)
        assert other.stdin is not None
        other.stdin.close()

    with hold("cpu", 60.0, end_the_other, folder=tmp_path):
        assert other.wait() == 0
    assert len(told) == 1 and f"process {other.pid}" in told[0] and "nightly" in told[0]


def test_a_wait_that_runs_out_is_refused(tmp_path: Path, other: subprocess.Popen) -> None:
    with pytest.raises(LeaseHeld, match=r"waited 0\.3 s"), hold("cpu", 0.3, folder=tmp_path):
        raise AssertionError("both hold the device")


def test_a_killed_holder_frees_the_device(tmp_path: Path, other: subprocess.Popen) -> None:
    other.kill()
    other.wait()
    with hold("cpu", folder=tmp_path) as path:
        assert path.parent == tmp_path


def test_a_process_started_under_the_lease_does_not_keep_it(tmp_path: Path) -> None:
    with hold("cpu", folder=tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with hold("cpu", folder=tmp_path):
        assert child.poll() is None
    child.communicate(b"\n")


def test_the_lease_is_free_after_an_error_inside(tmp_path: Path) -> None:
    with pytest.raises(KeyError), hold("cpu", folder=tmp_path):
        raise KeyError("x")
    with hold("cpu", folder=tmp_path), hold("cuda:0", folder=tmp_path), hold("cuda:1", folder=tmp_path):
        pass


def test_one_process_cannot_hold_a_device_twice(tmp_path: Path) -> None:
    with (
        hold("cuda", folder=tmp_path),
        pytest.raises(LeaseHeld, match=f"process {os.getpid()} since"),
        hold("cuda:0", folder=tmp_path),
    ):
        raise AssertionError("held twice")


def test_every_user_may_lock_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with hold("cpu", folder=tmp_path) as path:
            assert path.name == "campaign-lease-cpu.lock"
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_a_link_in_the_lock_files_place_is_refused_and_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    (tmp_path / "campaign-lease-cpu.lock").symlink_to(target)
    with pytest.raises(CampaignError, match=r"cannot lock the device with .*campaign-lease-cpu.lock"):
        with hold("cpu", folder=tmp_path):
            pass
    assert target.read_text() == "keep me"


@pytest.mark.parametrize(
    ("device", "visible", "key"),
    [
        ("cpu", "", "cpu"),
        ("cuda", "", "cuda-0"),
        ("cuda:1", "", "cuda-1"),
        ("cuda:0", "3", "cuda-3"),
        ("cuda:1", "2, GPU-1a2b", "cuda-GPU-1a2b"),
        ("mps/../x", "", "mps----x"),
    ],
)
def test_a_device_is_named_as_the_machine_numbers_it(
    monkeypatch: pytest.MonkeyPatch, device: str, visible: str, key: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_key(device) == key
