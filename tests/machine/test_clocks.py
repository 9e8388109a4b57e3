"""The clocks of one moment, from files and a tool made for the test."""

from __future__ import annotations

from collections.abc import Callable

from campaign import machine
from campaign.machine import Host

SMI = """#!/bin/sh
echo "1410, 1593, 1980, 41, 120.5"
"""


def test_the_cpu_clock_is_the_kernels_and_none_where_it_does_not_say(make_host: Callable[..., Host]) -> None:
    assert machine.clocks("cpu", make_host()) == {"cpu_mhz": None}
    assert machine.clocks("cpu", make_host({"proc/cpuinfo": "cpu MHz\t\t: 2645.03\n"})) == {"cpu_mhz": 2645.03}


def test_the_gpus_clocks_temperature_and_power_go_by_our_names(make_host: Callable[..., Host]) -> None:
    assert machine.clocks("cuda:0", make_host(smi=SMI))["gpu"] == {
        "sm_mhz": "1410",
        "memory_mhz": "1593",
        "largest_sm_mhz": "1980",
        "temperature_celsius": "41",
        "power_watts": "120.5",
    }


def test_a_gpu_that_cannot_be_asked_is_absent_with_the_reason(make_host: Callable[..., Host]) -> None:
    assert "absent" in machine.clocks("cuda:0", make_host())["gpu"]
