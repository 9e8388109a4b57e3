"""Every kernel rule: that it is one, and a kernel on which it speaks and one, nearest to that, on which it does not.

A new file in campaign/diagnosis/kernels with ORDER fails here until it has its two cases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaign.diagnosis.kernels import Facts, judge, rules
from campaign.traces.counters import KernelCounters

NAMES = [module.__name__.rpartition(".")[2] for module in rules()]
# Nothing stands out in it, and every counter is there.
PLAIN = KernelCounters(
    "kernel",
    1,
    architecture="sm_90",
    grid_blocks=13_200,
    threads_per_block=256,
    multiprocessors=132,
    registers_per_thread=32,
    spill_requests=0,
    spill_counter="derived__local_spilling_requests",
    theoretical_occupancy_percent=100.0,
    eligible_warps=1.2,
    no_eligible_percent=35.0,
    stalls_percent={"wait": 25.0, "long_scoreboard": 20.0, "selected": 30.0},
    sm_percent=55.0,
    memory_percent=50.0,
    dram_percent=45.0,
    l1_percent=40.0,
    pipes_percent={"tensor": 0.0, "fma": 30.0, "lsu": 20.0},
    waves=12.5,
)
WAITING = {"long_scoreboard": 56.0, "wait": 20.0, "selected": 8.0}
# For each rule the counters on which it speaks, and what of them, changed, takes its reason away.
CASES = {
    "not_profiled": ({"profiled": False}, {"profiled": True}),
    "register_pressure": (
        {"registers_per_thread": 255, "spill_requests": 9.65e6, "no_eligible_percent": 91.6, "stalls_percent": WAITING},
        {"spill_requests": 0},
    ),
    "dram_roof": ({"dram_percent": 88.0}, {"dram_percent": 79.0}),
    "compute_conversion": ({"sm_percent": 83.0, "dram_percent": 35.0}, {"dram_percent": 61.0}),
    "instruction_queue": ({"stalls_percent": {"lg_throttle": 73.0}}, {"stalls_percent": {"lg_throttle": 29.0}}),
    "healthy_by_design": ({"pipes_percent": {"tensor": 82.0}}, {"pipes_percent": {"tensor": 61.0}}),
    "memory_latency": ({"no_eligible_percent": 60.0, "stalls_percent": WAITING}, {"no_eligible_percent": 30.0}),
    "tail_effect": ({"waves": 1.2}, {"waves": 0.4}),
    "tile_or_precision": ({"pipes_percent": {"tensor": 61.0}}, {"pipes_percent": {"tensor": 10.0}}),
    "no_verdict": ({}, {"dram_percent": 88.0}),
}
FAMILIES = {"compute_conversion": "quantization"}


def test_the_rules_are_ordered_without_ties_and_explain_themselves():
    orders = [module.ORDER for module in rules()]
    assert orders == sorted(set(orders)) and NAMES[-1] == "no_verdict"
    for module in rules():
        assert len((module.__doc__ or "").split()) >= 12, f"{module.__name__}: its docstring is the rule"


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_speaks_on_its_case_and_not_on_the_nearest_other(name):
    positive, change = CASES[name]
    speaks = Facts(replace(PLAIN, **positive), FAMILIES.get(name, "other"))
    said, found = judge(speaks)
    assert said == name
    assert found.verdict and found.next and found.avoid
    assert all(found.numbers) and (found.numbers or name == "not_profiled")
    silent = Facts(replace(PLAIN, **{**positive, **change}), FAMILIES.get(name, "other"))
    assert judge(silent)[0] != name


LINKS = {
    "residency": {"registers_per_thread": 32},
    "no spills": {"spill_requests": 0},
    "spills not counted": {"spill_requests": None, "local_requests": 9.65e6},
    "issues": {"no_eligible_percent": 39.0},
    "issue not counted": {"no_eligible_percent": None, "eligible_warps": None},
    "no exposed latency": {"stalls_percent": {"wait": 60.0, "long_scoreboard": 29.0}},
    "stalls not counted": {"stalls_percent": {}},
}


@pytest.mark.parametrize("link", LINKS)
def test_register_pressure_needs_all_four_links(link):
    whole = replace(PLAIN, **CASES["register_pressure"][0])
    assert judge(Facts(whole))[0] == "register_pressure"
    assert judge(Facts(replace(whole, **LINKS[link])))[0] != "register_pressure"


def test_registers_that_limit_residency_are_a_link_below_128():
    # 84 x 32 -> 2,816 a warp: 5 a partition, 20 a multiprocessor, 2 blocks of 8 warps.
    one = replace(PLAIN, **{**CASES["register_pressure"][0], "registers_per_thread": 84})
    assert Facts(one).limited_by == ("registers",) and judge(Facts(one))[0] == "register_pressure"


def test_local_traffic_is_named_as_such_and_the_spill_counter_asked_for():
    one = replace(PLAIN, **{**CASES["register_pressure"][0], "spill_requests": None, "local_requests": 9.65e6})
    said, found = judge(Facts(one))
    assert said == "no_verdict" and "local traffic may be spills or arrays" in found.verdict
    assert found.missing == ("spill requests",) and "MemoryWorkloadAnalysis" in found.next[0]
    assert "local traffic 9.65M" in found.numbers


def test_no_local_traffic_proves_that_nothing_spills():
    changes = {**CASES["memory_latency"][0], "spill_requests": None, "local_requests": 0}
    said, found = judge(Facts(replace(PLAIN, **changes)))
    assert said == "memory_latency" and "local traffic 0, so no spill" in found.numbers


def test_a_conversion_is_one_by_its_family_and_not_by_its_counters():
    busy = replace(PLAIN, sm_percent=83.0, dram_percent=35.0)
    assert judge(Facts(busy, "quantization"))[0] == "compute_conversion"
    assert judge(Facts(busy, "recurrent"))[0] == "healthy_by_design"


def test_few_eligible_warps_bound_how_often_a_scheduler_issues():
    """Markov: with 0.14 eligible warps on average, at most 14 % of the cycles have one; with 0.7 nothing follows."""
    assert Facts(replace(PLAIN, no_eligible_percent=None, eligible_warps=0.14)).issue_active == 0.14
    assert Facts(replace(PLAIN, no_eligible_percent=None, eligible_warps=0.7)).issue_active is None


@pytest.mark.parametrize(
    ("changes", "efficiency"),
    [
        ({"waves": 12.5}, 12.5 / 13),
        ({"waves": 1.6}, 0.8),
        ({"waves": 2.0}, 1.0),
        ({"waves": 0.4}, None),  # within one wave by design
        ({"waves": None}, 12.5 / 13),  # 13,200 blocks on 132 multiprocessors with 8 each
        ({"waves": None, "cluster_blocks": 2}, None),
        ({"waves": None, "multiprocessors": None}, None),
    ],
)
def test_wave_efficiency_is_waves_of_whole_waves(changes, efficiency):
    assert Facts(replace(PLAIN, **changes)).wave_efficiency == (efficiency and pytest.approx(efficiency))


def test_no_verdict_names_what_is_missing_and_a_command_that_collects_it():
    bare = KernelCounters(
        "void my::kernel<float>(float *)", 1, registers_per_thread=228, theoretical_occupancy_percent=16.7
    )
    said, found = judge(Facts(bare))
    assert said == "no_verdict"
    assert set(found.missing) == {"compute throughput", "DRAM throughput", "pipe utilization", "spill requests",
                                  "eligible warps", "stall reasons"}  # fmt: skip
    (command,) = found.next
    assert command.startswith("collect them: ncu --section SpeedOfLight ")
    assert " -k kernel -c 1 --csv --page raw PROGRAM > kernels.csv" in command
    for section in (
        "SpeedOfLight",
        "ComputeWorkloadAnalysis",
        "MemoryWorkloadAnalysis",
        "SchedulerStats",
        "WarpStateStats",
    ):
        assert f"--section {section} " in command
    assert "LaunchStats" not in command  # that is there


def test_a_name_that_a_shell_would_read_is_quoted():
    found = judge(Facts(KernelCounters("odd;name", 1)))[1]
    assert "-k 'odd;name' " in found.next[0]


@pytest.mark.parametrize("registers", [0, 256, 1000])
def test_impossible_registers_recompute_nothing(registers):
    facts = Facts(replace(PLAIN, registers_per_thread=registers))
    assert registers == 0 or facts.occupancy is None
    assert judge(facts)


def test_an_architecture_without_known_limits_recomputes_nothing():
    facts = Facts(replace(PLAIN, architecture="sm_999"))
    assert facts.occupancy is None and facts.occupancy_percent == 100.0
