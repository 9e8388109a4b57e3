"""Every check of `campaign doctor`: picked up by its file, content with one machine and not with another."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.machine import Host, checks
from campaign.machine.checks import DOUBTFUL, FIT, GROUPS, LEVELS, UNFIT, UNKNOWN, Look
from campaign.machine.checks._gather import asked, counters, cxx, place, resolution
from campaign.machine.checks._look import Gpu, numbers
from tests.machine.answers import ANSWERS, NO_DRIVER, OLD_DRIVER
from tests.machine.check_cases import CPU, GIB, MACHINE
from tests.machine.device_cases import DEVICE, Case

FOLDER = Path(checks.__file__).parent
CASES = {**MACHINE, **DEVICE}
PYTHON = {"implementation": "CPython", "version": "3.11.7", "tuple": (3, 11), "debug": False}


def looking(host: Host, **changes: Any) -> Look:
    values: dict[str, Any] = {"device": "cpu", "cores": (0, 1), "pinned": (1,), "python": PYTHON}
    return Look(host=host, **(values | changes))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_every_file_is_a_check_with_a_name_a_group_and_a_docstring_and_has_its_cases() -> None:
    files = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    found = checks.checks()
    assert {module.__name__.rpartition(".")[2] for module in found} == files
    names = [module.NAME for module in found]
    assert len(set(names)) == len(names) and {module.GROUP for module in found} <= set(GROUPS)
    for module in found:
        tree = ast.parse(Path(str(module.__file__)).read_text())
        assert len(ast.get_docstring(tree) or "") > 60, module.NAME
    assert set(CASES) == set(names)
    for name, cases in CASES.items():
        levels = {level for _, _, level, _ in cases}
        assert (levels & {FIT, UNKNOWN} and levels & {DOUBTFUL, UNFIT}) or name == "clocks", name


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, cases in CASES.items() for case in cases],
    ids=lambda value: str(value)[:60],
)
def test_a_check_says_what_it_saw_and_how_bad_that_is(make_host: Callable[..., Host], name: str, case: Case) -> None:
    files, changes, level, words = case
    module = next(one for one in checks.checks() if one.NAME == name)
    answer = module.check(looking(make_host(files), **changes))
    assert (answer.level, words in answer.seen) == (level, True), answer
    if level in (DOUBTFUL, UNFIT):
        assert answer.cost and answer.mend, answer


def test_where_nothing_measures_on_a_gpu_only_the_device_speaks_of_one(make_host: Callable[..., Host]) -> None:
    found = checks.findings(looking(make_host()), ["GPU"])
    assert [(one.check, one.level) for one in found] == [("device", UNKNOWN)]
    absent = looking(make_host(), device="cuda:0", gpu=Gpu("nvidia-smi is not on this machine"))
    assert [(one.check, one.level) for one in checks.findings(absent, ["GPU"])] == [("device", UNFIT)]


def test_outside_a_project_nothing_is_said_of_git_and_mlflow(make_host: Callable[..., Host]) -> None:
    assert checks.findings(looking(make_host()), ["project"]) == ()


def test_fitness_is_the_worst_level_and_what_is_unknown_counts_for_nothing() -> None:
    assert LEVELS == (UNFIT, DOUBTFUL, UNKNOWN, FIT)
    one = checks.Finding("a", "machine", FIT, "")
    assert checks.fitness([]) == FIT == checks.fitness([one, one._replace(level=UNKNOWN)])
    assert checks.fitness([one._replace(level=DOUBTFUL), one]) == DOUBTFUL
    assert checks.fitness([one._replace(level=DOUBTFUL), one._replace(level=UNFIT)]) == UNFIT


def test_a_kernel_list_is_read_as_numbers() -> None:
    assert numbers("0-3,8") == (0, 1, 2, 3, 8)
    assert numbers("") == numbers("none") == ()


def test_counters_are_read_from_the_files_of_linux(make_host: Callable[..., Host]) -> None:
    host = make_host(
        {
            # user nice system idle iowait irq softirq steal: 10 + 1 + 5 + 2 + 2 ticks of work, 4 stolen, of 124
            "proc/stat": "cpu 1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 90 10 2 2 4 0 0\n",
            "proc/vmstat": "pgfault 9\npswpin 12\npswpout 3\n",
            "proc/self/cgroup": "0::/app",
            "sys/fs/cgroup/app/cpu.stat": "usage_usec 5\nnr_periods 300\nnr_throttled 12\n",
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "5",
        }
    )
    found = counters(host)
    assert found.cores == {0: (20, 4, 124)}
    assert (found.swapped_in_pages, found.quota_periods, found.heat_events) == (12, (12, 300), 5)


def test_nvidia_smi_is_asked_field_by_field_where_its_driver_does_not_know_one(make_host: Callable[..., Host]) -> None:
    smi = """#!/bin/sh
case "$*" in
  *name,driver_version*) echo 'Field "ecc.mode.pending" is not a valid field to query.'; exit 2 ;;
  *--query-gpu=name*) echo "NVIDIA H200" ;;
  *--query-gpu=persistence_mode*) echo "Enabled" ;;
  *--query-gpu=clocks_event_reasons.active*) echo 0x0000000000000008 ;;
  *--query-compute-apps*) echo "17, python train.py" ;;
  "") echo "| NVIDIA-SMI 570.124.06   Driver Version: 570.124.06   CUDA Version: 12.8  |" ;;
  *) exit 2 ;;
esac
"""
    found = asked(make_host(smi=smi), "cuda:0")
    assert (found.absent, found.fields["name"], found.fields["persistence_mode"]) == ("", "NVIDIA H200", "Enabled")
    assert found.fields["clocks.sm"] is None
    assert (found.processes, found.held, found.cuda) == (((17, "python train.py"),), {"hw_slowdown"}, "12.8")


@pytest.mark.parametrize("smi", ["", NO_DRIVER])
def test_a_device_that_does_not_answer_is_absent_and_says_why(make_host: Callable[..., Host], smi: str) -> None:
    assert asked(make_host(smi=smi), "cuda:0").absent


@pytest.mark.parametrize("smi", [ANSWERS, OLD_DRIVER])
def test_an_answer_of_the_wrong_shape_is_no_device(make_host: Callable[..., Host], smi: str) -> None:
    assert "answered 0 rows" in asked(make_host(smi=smi), "cuda:0").absent


def test_a_place_that_is_not_there_yet_has_the_room_of_the_folder_above_it(
    make_host: Callable[..., Host], tmp_path
) -> None:
    mounts = f"22 1 0:21 / / rw - ext4 /dev/vda rw\n23 22 0:22 / {tmp_path} rw - nfs4 server:/x rw\n"
    found = place("runs", tmp_path / "runs" / "deep", make_host({"proc/self/mountinfo": mounts}))
    room = os.statvfs(tmp_path)
    assert found.kind == "nfs4" and abs(found.free_bytes - room.f_bavail * room.f_frsize) < GIB and not found.flaw


def test_the_compiler_is_cxx_or_none_where_cxx_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert cxx() == ("", "CXX=/nowhere/g++ is not on this machine")
    tool = tmp_path / "my++"
    tool.write_text("#!/bin/sh\necho my++ 1.2.3\necho more\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CXX", f"{tool} -O2")
    assert cxx() == (f"{tool} -O2", "my++ 1.2.3")


def test_the_clocks_of_this_machine_move() -> None:
    timer = resolution()
    assert 0 < timer.wall_seconds < timer.limit_seconds and 0 < timer.read_seconds < 0.001
