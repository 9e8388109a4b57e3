from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign
from campaign import machine
from campaign.machine import Host, Watch, gpu
from campaign.records import Surroundings
from tests.machine.answers import ANSWERS, NO_DRIVER

ROOT = Path(campaign.__file__).parent.parent


def test_the_fingerprint_is_the_same_in_another_process_and_while_the_machine_works() -> None:
    here = machine.fingerprint("cpu")
    code = "import json; from campaign import machine; print(json.dumps(machine.fingerprint('cpu')))"
    pin = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); "
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for first in ("", pin):
            done = subprocess.run(
                [sys.executable, "-c", first + code], capture_output=True, text=True, check=True, cwd=ROOT
            )
            there = json.loads(done.stdout)
            assert there == here and machine.fingerprint_hash(there) == machine.fingerprint_hash(here)
    finally:
        burning.kill()
        burning.wait()


def test_the_fingerprint_is_of_this_machine_and_survives_json() -> None:
    facts = machine.fingerprint("cpu")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["host"] == os.uname().nodename and facts["kernel"] == os.uname().release
    assert facts["logical_cores"] == os.cpu_count() and facts["python"] == sys.version.split()[0]
    assert "gpu" not in facts


def test_the_fingerprint_imports_no_torch() -> None:
    code = "import sys; from campaign import machine; machine.fingerprint('cpu'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_the_hash_ignores_the_order_of_keys_and_follows_every_value() -> None:
    facts = machine.fingerprint("cpu")
    assert machine.fingerprint_hash(dict(reversed(facts.items()))) == machine.fingerprint_hash(facts)
    assert len({machine.fingerprint_hash({**facts, key: "other"}) for key in facts}) == len(facts)


def test_facts_are_read_from_the_files_of_linux(make_host: Callable[..., Host]) -> None:
    host = make_host(
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\nmicrocode\t: 0xa10113e\nflags\t: fpu sse\n",
            "proc/self/cgroup": "0::/user/app\n",
            "sys/fs/cgroup/user/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user/app/cpu.max": "max 100000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpufreq/boost": "1\n",
        }
    )
    facts = machine.fingerprint("cpu", host)
    assert (facts["cpu"], facts["microcode"], facts["cpu_quota"]) == ("AMD EPYC 9654", "0xa10113e", 1.5)
    assert (facts["governor"], facts["turbo"]) == ("powersave", True)
    assert machine.describe(facts).startswith(f"AMD EPYC 9654, {os.cpu_count()} cores, Linux ")


def test_a_machine_without_those_files_has_none_there(make_host: Callable[..., Host]) -> None:
    host = make_host()
    facts = machine.fingerprint("cpu", host)
    assert [facts[key] for key in ("microcode", "governor", "turbo", "cpu_quota", "cpu_flags")] == [None] * 5
    with Watch("cpu", host=host) as watch:
        pass
    assert watch.surroundings() == Surroundings(load=None, pressure=None, steal=None)
    assert machine.warnings("cpu", host) == []


def test_the_device_is_in_the_fingerprint_by_uuid_driver_and_power_limit(make_host: Callable[..., Host]) -> None:
    facts = machine.fingerprint("cuda", make_host(smi=ANSWERS))
    assert facts["device"] == "cuda:0" and facts["gpu"] == {
        "uuid": "GPU-5f3c",
        "name": "NVIDIA H200",
        "driver": "570.124.06",
        "memory_mib": "143771",
        "power_limit_watts": "700.00",
        "largest_sm_clock_mhz": "1980",
        "mig": "Disabled",
        "ecc": "Enabled",
    }
    assert machine.describe(facts).startswith("NVIDIA H200 (driver 570.124.06), ")


@pytest.mark.parametrize(
    ("smi", "why"), [("", "is not on this machine"), (NO_DRIVER, "couldn't communicate"), ("#!/bin/sh\n", "0 rows")]
)
def test_a_device_that_cannot_be_asked_is_said_to_be_absent(make_host: Callable[..., Host], smi: str, why: str) -> None:
    host = make_host(smi=smi)
    facts = machine.fingerprint("cuda:0", host)
    assert why in facts["gpu"]["absent"] and "no GPU facts" in machine.describe(facts)
    assert any(why in warning for warning in machine.warnings("cuda:0", host))
    with Watch("cuda:0", host=host) as watch:
        pass
    assert watch.surroundings().foreign == watch.surroundings().throttled == ()


@pytest.mark.parametrize(
    ("device", "visible", "asked"),
    [("cuda", "", "0"), ("cuda:2", "", "2"), ("cuda:0", "5,6", "5"), ("cuda:1", "5, GPU-a", "GPU-a")],
)
def test_nvidia_smi_is_asked_for_the_physical_device(
    monkeypatch: pytest.MonkeyPatch, device: str, visible: str, asked: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu.selector(device) == asked
