from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from campaign import machine
from campaign.machine import Host, Watch, gpu
from campaign.records import Surroundings
from tests.machine.answers import ANSWERS, OLD_DRIVER, write


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0x0000000000000000", set()),
        ("0x0000000000000001", set()),  # idle
        ("0x0000000000000005", {"sw_power_cap"}),
        (
            "0x00000000000000E8",
            {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"},
        ),
        ("0x2\n0x10\n0x100", {"applications_clocks_setting", "sync_boost", "display_clock_setting"}),
        ("0x1000", {"reason_0x1000"}),
        ("[N/A]\n0x00000", set()),
    ],
)
def test_clock_event_bits_have_the_names_of_nvml(text: str, names: set[str]) -> None:
    assert gpu.reasons(text) == names


def test_foreign_processes_are_those_on_the_device_outside_our_tree(make_host: Callable[..., Host]) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    apps = f"{os.getpid()}, python\n{child.pid}, python\n1, /usr/bin/other, with comma\n1, /usr/lib/other\n"
    made = make_host(smi=ANSWERS, apps=apps)
    host = Host(nvidia_smi=made.nvidia_smi)  # the real /proc, where process 1 is not ours
    with Watch("cuda:0", host=host) as watch:
        pass
    child.communicate(b"\n")
    assert watch.surroundings().foreign == ("/usr/lib/other (1)",)


def test_clock_events_are_those_of_both_ends_and_of_every_sample_between(make_host: Callable[..., Host]) -> None:
    host = make_host(smi=ANSWERS)
    with Watch("cuda:0", host=host) as watch:
        samples = watch._samples
        assert samples is not None
        deadline = time.monotonic() + 30
        while os.fstat(samples.fileno()).st_size < 38 and time.monotonic() < deadline:
            time.sleep(0.01)  # the tool's two lines
    assert watch.surroundings().throttled == ("hw_thermal_slowdown", "sw_power_cap")
    assert watch._sampler is not None and watch._sampler.returncode == -signal.SIGTERM


def test_an_older_driver_is_asked_by_the_older_name(make_host: Callable[..., Host]) -> None:
    with Watch("cuda:0", host=make_host(smi=OLD_DRIVER)) as watch:
        pass
    assert watch.surroundings().throttled == ("hw_slowdown",)


def test_in_a_container_only_more_processes_than_trials_are_foreign(make_host: Callable[..., Host]) -> None:
    apps = "4000001, python\n4000002, python\n"  # pids of the host, which this container's /proc does not have
    for ours, foreign in (([11, 12], ()), ([11], ("1 more than our 1, outside this container",))):
        with Watch("cuda:0", ours, make_host(smi=ANSWERS, apps=apps)) as watch:
            pass
        assert watch.surroundings().foreign == foreign


def test_load_pressure_and_steal_are_read_from_proc(make_host: Callable[..., Host]) -> None:
    files = {
        "proc/loadavg": "1.50 1.00 0.50 2/100 4242\n",
        "proc/pressure/cpu": "some avg10=12.50 avg60=1.00 avg300=0.10 total=9\nfull avg10=0.00 avg60=0.00 total=0\n",
        "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\n",
    }
    host = make_host(files)
    with Watch("cpu", host=host) as watch:
        write(host.proc / "stat", "cpu  140 0 100 850 0 0 0 10 7 0\n")  # 100 ticks later, 10 of them stolen
    assert watch.surroundings() == Surroundings(load=1.5, pressure=0.125, steal=0.1)


def test_steal_is_that_of_the_cores_that_our_processes_may_use(make_host: Callable[..., Host]) -> None:
    core = min(os.sched_getaffinity(0))
    child = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}}); print('on', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "on\n"
    host = make_host({"proc/stat": f"cpu  0 0 0 0 0 0 0 0 0 0\ncpu{core} 0 0 0 0 0 0 0 0 0 0\n"})
    with Watch("cpu", [child.pid], host) as watch:
        write(host.proc / "stat", f"cpu  0 0 0 380 0 0 0 20 0 0\ncpu{core} 60 0 0 20 0 0 0 20 0 0\n")
    child.communicate("\n")
    assert watch.surroundings().steal == 0.2


def test_watching_this_machine_gives_shares_between_none_and_one() -> None:
    with Watch("cpu", [os.getpid()]) as watch:
        sum(range(100_000))
    seen = watch.surroundings()
    assert seen.load is None or seen.load >= 0
    for share in (seen.pressure, seen.steal):
        assert share is None or 0 <= share <= 1
    assert seen.foreign == seen.throttled == ()


def test_the_process_tree_holds_children_of_children() -> None:
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()']); "
        "print(p.pid, flush=True); p.wait()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    tree = machine.process_tree([os.getpid()])
    assert {os.getpid(), child.pid, grandchild} <= tree and os.getppid() not in tree
    child.communicate("\n")


def test_each_warning_says_what_to_do(make_host: Callable[..., Host]) -> None:
    cores = os.cpu_count() or 1
    host = make_host(
        {
            "proc/loadavg": f"{cores}.00 1 1 1/1 1\n",
            "proc/self/cgroup": "0::/\n",
            "proc/77/stat": "77 (mlflow (ui)) S 1 77 77\n",
            "proc/77/cmdline": "/usr/bin/python\0/usr/bin/mlflow\0ui\0--port\x005000\0",
            "proc/78/stat": "78 (vim) S 1 78 78\n",
            "proc/78/cmdline": "vim\0mlflow_ui_notes.txt\0",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
            "sys/class/power_supply/BAT0/status": "Discharging\n",
        },
        smi=ANSWERS,
        apps="4000001, python\n",
    )
    said = machine.warnings("cuda:0", host)
    for part in (
        "python (4000001)",
        "nvidia-smi -i 0 -pm 1",
        f"load average {cores}.0 on {cores} cores",
        "kill 77",
        "may use 0.5 of",
        "cpupower frequency-set -g performance",
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
        "charger",
    ):
        assert sum(part in sentence for sentence in said) == 1, part
    assert len(said) == 8


def test_a_quiet_machine_gets_no_warning(make_host: Callable[..., Host]) -> None:
    host = make_host(
        {
            "proc/loadavg": "0.01 0.01 0.01 1/1 1\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
            "sys/class/power_supply/BAT0/status": "Charging\n",
        }
    )
    assert machine.warnings("cpu", host) == []
