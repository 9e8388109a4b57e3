"""The parts that run in the trial's process, against hand arithmetic."""

from __future__ import annotations

import gc
import math
import types
from pathlib import Path

import numpy
import pytest
import torch

from campaign.likeness import spelled
from campaign.machine import fingerprint
from campaign.memory import step_memory
from campaign.memory.tensors import graph_pool_bytes, live_tensor_peak
from campaign.parity import measure, relative_distance
from campaign.probe import GRADIENT_SAMPLE, probe_workload
from campaign.probe.loaded import only_what_is_loaded
from campaign.probe.operators import counted
from campaign.records import ArmProbe, ParityClaim
from campaign.timing import is_steady, steps_per_block, timed_block

MIB = 1 << 20


def test_three_tensors_of_8_mib_alive_at_once_peak_at_24_mib():
    def step():
        kept = [torch.empty(8 * MIB, dtype=torch.uint8).fill_(1) for _ in range(3)]
        del kept

    assert live_tensor_peak(step) == 24 * MIB


def test_tensors_freed_in_between_do_not_add_up():
    def step():
        for _ in range(3):
            torch.empty(8 * MIB, dtype=torch.uint8).fill_(1)

    assert live_tensor_peak(step) == 8 * MIB


def test_what_outlives_the_step_counts_from_its_start_even_when_first_used_at_its_end():
    state = torch.zeros(4 * MIB, dtype=torch.uint8)

    def step():
        torch.empty(8 * MIB, dtype=torch.uint8).fill_(1)
        state.add_(1)

    assert live_tensor_peak(step) == 12 * MIB


def test_views_share_their_storage():
    def step():
        whole = torch.empty(8 * MIB, dtype=torch.uint8).fill_(1)
        half = whole[: 4 * MIB]
        half.add_(1)

    # An operator's own scalars are storages too, of a few bytes each.
    assert 0 <= live_tensor_peak(step) - 8 * MIB < 64


@pytest.mark.slow
def test_what_compiled_code_allocates_is_seen_although_no_operator_is_dispatched():
    @torch.compile(dynamic=False)
    def doubled(x):
        return (x * 2).sin()

    x = torch.zeros(2 * MIB, dtype=torch.uint8).float()
    doubled(x)
    kept = []

    def step():
        kept[:] = []
        kept.append(doubled(x))

    # x and its double, 8 MiB each; eager code would hold the product beside both for a moment
    assert 0 <= live_tensor_peak(step) - 16 * MIB < 64


class Counting:
    """A workload whose step appends to a list, to see what a block does around it."""

    device = "cpu"
    tokens_per_step = 10

    def __init__(self):
        self.events = []

    def step(self):
        self.events.append(("step", gc.isenabled()))

    def synchronize(self):
        self.events.append(("synchronize", gc.isenabled()))

    def last_step(self):
        self.events.append(("last_step", gc.isenabled()))
        return {"loss": 3, "gradient_norm": 4}


def test_a_block_synchronises_at_its_two_ends_only_and_keeps_the_collector_off():
    workload = Counting()
    reply = timed_block(workload, 3)
    assert [name for name, _ in workload.events] == ["synchronize", "step", "step", "step", "synchronize", "last_step"]
    assert [on for name, on in workload.events if name == "step"] == [False] * 3
    assert gc.isenabled()
    assert (reply["steps"], reply["tokens"], reply["device_seconds"]) == (3, 30, None)
    assert (reply["loss"], reply["gradient_norm"]) == (3.0, 4.0)


def test_the_collector_comes_back_after_a_step_that_raises():
    workload = Counting()
    workload.step = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        timed_block(workload, 1)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("seconds", "steady"),
    [
        ([1.0] * 9, False),  # two windows of five do not fit yet
        ([1.0] * 10, True),
        ([2.0] * 5 + [1.0] * 5, False),
        ([1.05] * 5 + [1.0] * 5, True),  # 0.05 / 1.05 = 4.8 %
        ([1.06] * 5 + [1.0] * 5, False),  # 0.06 / 1.06 = 5.7 %
        ([9.0, 1.0, 1.0, 1.0, 1.0] + [1.0] * 5, True),  # the median does not see one slow step
    ],
)
def test_steady_compares_the_last_five_steps_with_the_five_before(seconds, steady):
    assert is_steady(seconds, minimum=5, window=5, tolerance=0.05) is steady


@pytest.mark.parametrize(("step", "steps"), [(0.060, 1), (0.049, 2), (0.010, 5), (0.0, 1)])
def test_a_block_lasts_50_ms_or_one_step(step, steps):
    assert steps_per_block(step, 1, 0.05) == steps


def test_relative_distance_of_3_4_to_5():
    left = {"a": numpy.array([3.0, 0.0]), "b": numpy.array([4.0])}
    right = {"a": numpy.array([0.0, 0.0]), "b": numpy.array([8.0])}
    # the difference is (3, 0, -4), of norm 5; the reference has norm 8
    assert relative_distance(left, right) == 5 / 8


def test_a_reference_of_zeros_gives_a_finite_distance():
    zeros = {"a": numpy.zeros(3)}
    assert relative_distance(zeros, zeros) == 0.0
    assert math.isfinite(relative_distance({"a": numpy.ones(3)}, zeros))


def save(path, **arrays):
    with path.open("wb") as file:
        numpy.savez(file, **arrays)
    return path


def test_arms_with_different_parameters_have_no_distance_and_say_why(tmp_path):
    probes = {role: ArmProbe(role, "ok", losses=(1.0,), gradients_sha256=role) for role in ("control", "treatment")}
    files = {
        "control": save(tmp_path / "c", w=numpy.ones(2)),
        "treatment": save(tmp_path / "t", w=numpy.ones(2), extra=numpy.ones(1)),
        "reference": save(tmp_path / "r", w=numpy.ones(2)),
    }
    measured = measure(probes, files, ParityClaim("rounding"))
    assert measured.treatment_distance is None
    assert measured.message == "the arms train different parameters: extra"
    assert not measured.bitwise


def test_bitwise_needs_equal_losses_too():
    same = {"gradients_sha256": "s", "gradient_norms": (1.0,)}
    probes = {"control": ArmProbe("control", "ok", losses=(1.0,), **same)}
    probes["treatment"] = ArmProbe("treatment", "ok", losses=(1.25,), **same)
    measured = measure(probes, {}, ParityClaim("bitwise"))
    assert (measured.bitwise, measured.loss_difference) == (False, 0.25)


def test_bitwise_needs_equal_gradients_in_the_later_steps_too():
    same = {"losses": (1.0,), "gradient_norms": (1.0,), "gradients_sha256": "a"}
    control = ArmProbe("control", "ok", **same, later_gradients_sha256="b")
    for later, equal in (("b", True), ("c", False)):
        treatment = ArmProbe("treatment", "ok", **same, later_gradients_sha256=later)
        probes = {"control": control, "treatment": treatment}
        assert measure(probes, {}, ParityClaim("bitwise")).bitwise is equal


def test_static_rows_of_an_object_that_no_step_loaded_are_unavailable():
    loaded = Path(numpy.linalg._umath_linalg.__file__).name
    rows = [
        {"object": loaded, "status": "ok"},
        {"object": "other.so", "status": "ok"},
        {"object": None, "status": "ok"},
    ]
    only_what_is_loaded(rows)
    assert [row["status"] for row in rows] == ["ok", "unavailable", "ok"]
    assert "other.so was compiled, but no step loaded it" in rows[1]["reason"]


def test_the_gradient_sample_is_bounded_and_evenly_spaced(tmp_path):
    gradient = torch.arange(3 * GRADIENT_SAMPLE, dtype=torch.float32)
    wide = torch.arange(4 * GRADIENT_SAMPLE, dtype=torch.float32).view(-1, 1024)
    workload = types.SimpleNamespace(
        device="cpu",
        low_precision="none",
        step=lambda: None,
        synchronize=lambda: None,
        gradients=lambda: {"w": gradient, "v": wide},
        last_step=lambda: {"loss": 1.0, "gradient_norm": 2.0},
        facts=dict,
    )
    reply = probe_workload(workload, 2, tmp_path / "g.npz")
    with numpy.load(tmp_path / "g.npz") as saved:
        assert saved["w"].tolist() == list(range(0, 3 * GRADIENT_SAMPLE, 3))
        # A stride of 4 would look at 256 of the 1,024 columns; 5 comes to all of them.
        assert {int(value) % 1024 for value in saved["v"].reshape(-1)} == set(range(1024))
        assert len(saved["v"]) <= GRADIENT_SAMPLE
    assert (reply["losses"], reply["gradient_norms"]) == ([1.0, 1.0], [2.0, 2.0])


def test_memory_of_a_cpu_step_has_a_limit_and_a_process_peak():
    workload = types.SimpleNamespace(device="cpu", step=lambda: torch.ones(MIB).sum())
    measured = step_memory(workload)
    assert 4 <= measured.live_peak_bytes - 4 * MIB < 64
    assert measured.limit_bytes > measured.process_peak_bytes > 4 * MIB


def test_what_a_captured_graph_keeps_for_itself_counts_beside_the_allocated_peak():
    segments = [
        {"segment_pool_id": (0, 0), "total_size": 100 * MIB, "allocated_size": 60 * MIB},
        {"segment_pool_id": (0, 1), "total_size": 20 * MIB, "allocated_size": 4 * MIB},
        {"segment_pool_id": (0, 1), "total_size": 10 * MIB, "allocated_size": 0},
    ]
    assert graph_pool_bytes(segments) == (20 - 4 + 10) * MIB


def test_operators_dispatched_while_a_graph_was_captured_count_as_run(tmp_path):
    workload = types.SimpleNamespace(
        device="cpu",
        low_precision="none",
        step=lambda: torch.ones(2).mul(2.0),
        synchronize=lambda: None,
        gradients=lambda: {"w": torch.ones(2)},
        last_step=lambda: {"loss": 1.0, "gradient_norm": 2.0},
        facts=dict,
    )
    _, captured = counted(lambda: torch.ones(2).mul(2.0).rsqrt())
    reply = probe_workload(workload, 1, tmp_path / "g.npz", captured)
    assert reply["counters"]["op:aten::mul"] == 1 + 1
    assert reply["counters"]["op:aten::rsqrt"] == 1


def test_the_worker_spells_its_device_as_the_plan_does():
    for device in ("cpu", "cuda:1"):
        assert spelled(device) == fingerprint(device)["device"] == device
    assert spelled("cuda") == fingerprint("cuda")["device"] == "cuda:0"
