"""Machines on which each of the machine's checks is content, and some on which it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from campaign.machine.checks import DOUBTFUL, FIT, UNFIT, UNKNOWN, Place
from campaign.machine.checks._look import Counters, Timer
from tests.machine.device_cases import Case, card

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
GROUP_OF_TWO = {f"{CPU}/cpu1/topology/thread_siblings_list": "0-1"}
QUIET = Counters(0.0, {0: (0, 0, 0), 1: (0, 0, 0)})
# Ticks of 1/100 s: in one second core 0 was busy for 0.05 s and core 1 for 0.9 s, 0.02 s were stolen from core 1.
WORKED = Counters(1.0, {0: (5, 0, 100), 1: (90, 2, 100)})
GIB = 1 << 30


def meminfo(total: int = 16, available: int = 12, swap: int = 0, swap_free: int = 0) -> dict[str, str]:
    """/proc/meminfo, in GiB."""
    values = {"MemTotal": total, "MemAvailable": available, "SwapTotal": swap, "SwapFree": swap_free}
    return {"proc/meminfo": "".join(f"{name}: {value * 1024 * 1024} kB\n" for name, value in values.items())}


def disk(gib: float, kind: str = "ext4", flaw: str = "") -> dict[str, Any]:
    return {"places": (Place("runs", "/project/runs", int(gib * GIB), kind, flaw),)}


# By check: (files of the machine, what else is seen, level, words of what is seen), each of which is a case. The
# figures in the words are by hand from the files.
MACHINE: dict[str, list[Case]] = {
    "governor": [
        ({f"{CPU}/cpu0/cpufreq/scaling_governor": "performance"}, {}, FIT, "performance"),
        ({f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave"}, {}, DOUBTFUL, "powersave"),
        ({}, {}, UNKNOWN, "no frequency governor"),
    ],
    "turbo": [
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, {}, FIT, "off"),
        ({f"{CPU}/intel_pstate/no_turbo": "0"}, {}, DOUBTFUL, "on"),
        ({f"{CPU}/cpufreq/boost": "1"}, {}, DOUBTFUL, "on"),
        ({}, {}, UNKNOWN, "no turbo switch"),
    ],
    "load": [
        ({"proc/loadavg": "0.10 0.2 0.3 1/99 7"}, {"before": QUIET, "after": QUIET}, FIT, "load average 0.10"),
        # 0.95 of 2 cores were busy for a second
        ({}, {"before": QUIET, "after": WORKED}, DOUBTFUL, "others used 0.95 of 2 cores for 1.0 s"),
        # all of it was ours
        ({}, {"before": QUIET, "after": replace(WORKED, own_seconds=0.95)}, FIT, "others used 0.00 of 2 cores"),
        # 1.3 > 2 - 1/1.3 = 1.23
        (
            {},
            {"before": QUIET, "after": Counters(1.0, {0: (65, 0, 100), 1: (65, 0, 100)})},
            UNFIT,
            "others used 1.30 of 2 cores",
        ),
        (
            {},
            {"before": QUIET, "after": Counters(1.0, {0: (65, 0, 100), 1: (65, 0, 100)}), **card()},
            DOUBTFUL,
            "others used 1.30 of 2 cores",
        ),
        ({"proc/pressure/cpu": "some avg10=30.26 avg60=0 avg300=0 total=1"}, {}, DOUBTFUL, "30.3 % of 10 s"),
        ({"proc/loadavg": "1.10 0.2 0.3 1/99 7"}, {}, DOUBTFUL, "load average 1.10"),
        ({}, {}, UNKNOWN, "nothing of the load"),
    ],
    "quota": [
        ({}, {}, FIT, "none"),
        ({"proc/self/cgroup": "0::/app", "sys/fs/cgroup/app/cpu.max": "400000 100000"}, {}, FIT, "4 of 2 cores"),
        ({"proc/self/cgroup": "0::/app", "sys/fs/cgroup/app/cpu.max": "150000 100000"}, {}, DOUBTFUL, "1.5 of 2"),
        (
            {"proc/self/cgroup": "0::/app", "sys/fs/cgroup/app/cpu.max": "200000 100000"},
            {"after": replace(QUIET, quota_periods=(12, 300))},
            DOUBTFUL,
            "stopped in 12 of 300 periods",
        ),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            {},
            DOUBTFUL,
            "0.5 of 2 cores",
        ),
    ],
    "cores": [
        ({}, {}, FIT, "2 allowed (0-1), rounds are pinned to 1"),
        ({}, {"cores": (3,), "pinned": (3,)}, DOUBTFUL, "1 allowed (3)"),
        ({}, {"cores": (0, 1, 2), "pinned": (2,), "after": QUIET}, UNFIT, "2 is offline"),
    ],
    "memory": [
        (meminfo(16, 12), {}, FIT, "12.00 GiB of 16.00 GiB"),
        (meminfo(64, 5), {}, DOUBTFUL, "5.00 GiB of 64.00 GiB"),
        (
            {
                **meminfo(16, 12),
                "proc/self/cgroup": "0::/app",
                "sys/fs/cgroup/app/memory.max": str(4 * GIB),
                "sys/fs/cgroup/app/memory.current": str(3 * GIB),
            },
            {},
            DOUBTFUL,
            "1.00 GiB of 4.00 GiB are free (by its group's limit)",
        ),
        ({}, {}, UNKNOWN, "says nothing"),
    ],
    "swap": [
        (meminfo(), {}, FIT, "none"),
        (meminfo(swap=8, swap_free=8), {}, FIT, "0 B of 8.00 GiB used"),
        (meminfo(swap=8, swap_free=5), {}, DOUBTFUL, "3.00 GiB of 8.00 GiB used"),
        (
            meminfo(swap=8, swap_free=8),
            {"before": replace(QUIET, swapped_in_pages=10), "after": replace(WORKED, swapped_in_pages=17)},
            UNFIT,
            "7 pages came back in 1.0 s",
        ),
        ({}, {}, UNKNOWN, "says nothing"),
    ],
    "heat": [
        ({"sys/class/thermal/thermal_zone0/temp": "45000"}, {}, FIT, "hottest zone 45 C"),
        (
            {
                "sys/class/thermal/thermal_zone0/temp": "96000",
                "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive",
                "sys/class/thermal/thermal_zone0/trip_point_0_temp": "95000",
            },
            {},
            DOUBTFUL,
            "hottest zone 96 C",
        ),
        (
            {},
            {"before": replace(QUIET, heat_events=5), "after": replace(WORKED, heat_events=8)},
            DOUBTFUL,
            "8 throttling events since boot, 3 of them in the last 1.0 s",
        ),
        ({}, {"before": replace(QUIET, heat_events=5), "after": replace(WORKED, heat_events=5)}, FIT, "5 throttling"),
        ({}, {}, UNKNOWN, "no thermal state"),
    ],
    "NUMA": [
        ({f"{NODE}/online": "0", f"{NODE}/node0/cpulist": "0-1"}, {}, FIT, "one node"),
        (
            {
                f"{NODE}/online": "0-1",
                f"{NODE}/node0/cpulist": "0",
                f"{NODE}/node1/cpulist": "1",
                "proc/sys/kernel/numa_balancing": "0",
            },
            {},
            FIT,
            "2 nodes; rounds are pinned to cores 1 of node 1",
        ),
        (
            {
                f"{NODE}/online": "0-1",
                f"{NODE}/node0/cpulist": "0",
                f"{NODE}/node1/cpulist": "1",
                "proc/sys/kernel/numa_balancing": "1",
            },
            {},
            DOUBTFUL,
            "page balancing is on",
        ),
        (
            {f"{NODE}/online": "0-1", f"{NODE}/node0/cpulist": "0", f"{NODE}/node1/cpulist": "1"},
            {"pinned": (0, 1)},
            DOUBTFUL,
            "cores 0-1 of node 0, 1",
        ),
        ({}, {}, UNKNOWN, "no nodes"),
    ],
    "virtual": [
        ({}, {}, FIT, "neither virtual machine nor container"),
        ({"proc/cpuinfo": "flags : fpu hypervisor sse\n"}, {}, FIT, "a virtual machine"),
        ({"proc/self/mountinfo": "22 1 0:21 / / rw,relatime - overlay overlay rw"}, {}, FIT, "a container"),
        ({"proc/1/cgroup": "0::/kubepods/burstable/x"}, {}, FIT, "a container"),
        # 2 of 200 ticks are 1 %, which is not above it
        ({}, {"before": QUIET, "after": WORKED}, FIT, "took 1.00 %"),
        ({}, {"before": QUIET, "after": Counters(1.0, {0: (5, 6, 100)})}, UNFIT, "took 6.00 % of 1.0 s"),
        ({}, {"before": QUIET, "after": Counters(1.0, {0: (5, 3, 100)})}, DOUBTFUL, "took 3.00 % of 1.0 s"),
    ],
    "sibling": [
        ({f"{CPU}/cpu1/topology/thread_siblings_list": "1"}, {}, FIT, "no other hardware thread on core 1"),
        (GROUP_OF_TWO, {"before": QUIET, "after": WORKED}, FIT, "core 0, beside 1, was busy 5.00 %"),
        (
            GROUP_OF_TWO,
            {"before": QUIET, "after": Counters(1.0, {0: (60, 0, 100), 1: (0, 0, 100)})},
            DOUBTFUL,
            "core 0, beside 1, was busy 60.0 %",
        ),
        (GROUP_OF_TWO, {}, UNKNOWN, "cannot be read"),
        ({}, {}, UNKNOWN, "does not say"),
    ],
    "battery": [
        ({}, {}, FIT, "none"),
        ({"sys/class/power_supply/BAT0/status": "Charging"}, {}, FIT, "not on battery"),
        ({"sys/class/power_supply/BAT0/status": "Discharging"}, {}, DOUBTFUL, "BAT0 is discharging"),
    ],
    "timer": [
        ({}, {"timer": Timer(4e-8, 2e-7, 5e-8)}, FIT, "wall time moves in 40 ns, processor time in 200 ns"),
        # 10 ms are a fifth of a block of 50 ms
        ({}, {"timer": Timer(4e-8, 0.01, 5e-8)}, DOUBTFUL, "processor time in 10.00 ms"),
        ({}, {"timer": Timer(4e-8, 0.05, 5e-8)}, UNFIT, "processor time in 50.00 ms"),
        (
            {
                "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
                "sys/devices/system/clocksource/clocksource0/available_clocksource": "hpet acpi_pm tsc",
            },
            {"timer": Timer(4e-8, 2e-7, 5e-8)},
            DOUBTFUL,
            "clock source hpet",
        ),
        ({}, {}, UNKNOWN, "not looked at"),
    ],
    "disk": [
        ({}, disk(50), FIT, "runs: 50.00 GiB free"),
        ({}, disk(1), DOUBTFUL, "runs: 1.00 GiB free"),
        ({}, disk(50, "nfs4"), DOUBTFUL, "50.00 GiB free on nfs4"),
        ({}, disk(0.05), UNFIT, "51.2 MiB free"),
        ({}, disk(50, flaw="it may not be written to"), UNFIT, "/project/runs: it may not be written to"),
    ],
    "MLflow server": [
        ({}, {}, FIT, "none"),
        (
            {"proc/77/stat": "77 (mlflow) S 1 7 7", "proc/77/cmdline": "python\0/venv/bin/mlflow\0ui\0--port\0005000"},
            {},
            DOUBTFUL,
            "process 77",
        ),
        ({"proc/77/stat": "77 (vim) S 1 7 7", "proc/77/cmdline": "vim\0mlflow server notes"}, {}, FIT, "none"),
    ],
}
