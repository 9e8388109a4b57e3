from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch

from kernels.errors import Unavailable
from models.workload import ReferenceWorkload
from tests.models.observing import counted, same, stepped, trained


@pytest.mark.parametrize(("higher", "dtype"), [("bf16", "torch.bfloat16"), ("fp32", "torch.float32")])
def test_tail_sites_run_in_the_higher_precision(small: Any, higher: str, dtype: str) -> None:
    counts = counted(small(precision={"higher": higher})).counts
    # 3 * (gate, decay, out) + attention_out: forward, recompute, two products backward. The head is not recomputed.
    tail = 2 * (10 * 4 + 3)
    # The 16 fp8 projections are emulated by float32 products of the same number.
    emulated = 2 * 16 * 4
    assert counts[f"aten.mm {dtype}"] == tail + (emulated if higher == "fp32" else 0)
    assert sum(n for name, n in counts.items() if name.startswith("aten.mm")) == tail + emulated


def test_loss_goes_down(configured: Any) -> None:
    workload = ReferenceWorkload(**configured())
    losses = []
    for _ in range(20):
        workload.step()
        losses.append(workload.last_step()["loss"])
    assert sum(losses[-5:]) / 5 < losses[0] - 1.0


def test_two_runs_are_the_same_to_the_bit(small: Any) -> None:
    one, two = ReferenceWorkload(**small()), ReferenceWorkload(**small())
    for _ in range(3):
        one.step()
        two.step()
    assert one.last_step() == two.last_step()
    assert all(torch.equal(p, two.parameters()[name]) for name, p in one.parameters().items())


def test_parameters_and_batches_do_not_depend_on_ops_or_formats(small: Any) -> None:
    ours = ReferenceWorkload(**small())
    others = [
        ReferenceWorkload(**small(precision={"gemm": "fp32", "higher": "fp32"}, checkpoint={"policy": "none"})),
        ReferenceWorkload(**small(ops={"recurrence": "reference"}, quant={"scales": "per_row"})),
    ]
    for other in others:
        assert all(torch.equal(p, other.parameters()[name]) for name, p in ours.parameters().items())
    ours.step()
    for other in others:
        other.step()
        # Another batch moves the loss by about 0.3.
        assert other.last_step()["loss"] == pytest.approx(ours.last_step()["loss"], abs=0.05)


def test_another_seed_gives_other_parameters(small: Any) -> None:
    one, two = ReferenceWorkload(**small()), ReferenceWorkload(**small(seed=1))
    assert not torch.equal(one.parameters()["head.weight"], two.parameters()["head.weight"])


def test_microsteps_add_up_to_the_mean_gradient_of_the_joined_batch(small: Any) -> None:
    unclipped = {"optimizer": {"clip": 1e9}}
    split, joined = (
        stepped(ReferenceWorkload.exact(small(batch=batch, **unclipped)))
        for batch in ({"sequences": 2, "microsteps": 3}, {"sequences": 6, "microsteps": 1})
    )
    assert split.tokens_per_step == joined.tokens_per_step == 6 * 40
    assert split.last_step() == pytest.approx(joined.last_step(), rel=1e-5)
    for name, gradient in split.gradients().items():
        torch.testing.assert_close(gradient, joined.gradients()[name], rtol=1e-3, atol=1e-5)


def test_gradients_are_clipped_and_the_norm_is_told_from_before(small: Any) -> None:
    free, clipped = (stepped(small(optimizer={"clip": clip})) for clip in (1e9, 0.01))
    norm = torch.stack([g.norm() for g in free.gradients().values()]).norm().item()
    assert norm == pytest.approx(free.last_step()["gradient_norm"], rel=1e-5)
    assert clipped.last_step()["gradient_norm"] == free.last_step()["gradient_norm"]
    shortened = torch.stack([g.norm() for g in clipped.gradients().values()]).norm().item()
    assert shortened == pytest.approx(0.01, rel=1e-3)
    assert clipped.gradients().keys() == clipped.parameters().keys()


def test_exact_turns_quantization_off_and_leaves_the_rest(small: Any) -> None:
    config = small()
    before = copy.deepcopy(config)
    exact = ReferenceWorkload.exact(config)
    assert config == before
    assert exact == {**config, "precision": {**config["precision"], "gemm": "fp32", "higher": "fp32"}}
    workload = stepped(exact)
    assert workload.low_precision == "none"
    assert set(workload.facts()["formats"].values()) == {"fp32"}


def test_reference_computes_the_exact_step_with_reference_ops(small: Any) -> None:
    edited = small(ops={"recurrence_backward": "phase_split", "gated": "cpu"}, compile="block", graph=True)
    reference = ReferenceWorkload.reference(edited)
    assert (reference["compile"], reference["graph"]) == ("none", False)
    assert reference["ops"] == {
        "prenorm": "reference",
        "recurrence": "reference",
        "recurrence_backward": "fused",
        "recurrence_registers": 0,
        "quantize": "reference",
        "gated": "separate",
    }
    ours, theirs = stepped(ReferenceWorkload.exact(small())), stepped(reference)
    assert ours.last_step() == pytest.approx(theirs.last_step(), rel=1e-4)
    for name, gradient in ours.gradients().items():
        torch.testing.assert_close(gradient, theirs.gradients()[name], rtol=1e-3, atol=1e-5)


def test_fp8_step_stays_near_the_exact_one_but_is_not_it(small: Any) -> None:
    quantized, exact = stepped(small()), stepped(ReferenceWorkload.exact(small()))
    ours, theirs = (torch.cat([g.flatten() for g in workload.gradients().values()]) for workload in (quantized, exact))
    # An e4m3 value is off by up to 1/16; an average product by a few percent, over four blocks.
    error = ((ours - theirs).norm() / theirs.norm()).item()
    assert 0.005 < error < 0.5


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {
            "ops": {"prenorm": "cpu", "gated": "cpu", "recurrence_backward": "live_state"},
            "quant": {"weights": "cached", "activations": "shared", "scales": "per_row"},
            "precision": {"tail": []},
            "checkpoint": {"policy": "selective", "fraction": 0.5},
        },
    ],
)
def test_a_restarted_workload_repeats_its_first_steps_to_the_bit(small: Any, sections: Any) -> None:
    workload = stepped(small(**sections))
    first, told = trained(workload), workload.last_step()
    workload.step()
    second = trained(workload)
    workload.step()
    addresses = {name: parameter.data_ptr() for name, parameter in workload.parameters().items()}
    versions = {name: parameter._version for name, parameter in workload.parameters().items()}
    workload.restart()
    assert addresses == {name: parameter.data_ptr() for name, parameter in workload.parameters().items()}
    assert all(parameter._version > versions[name] for name, parameter in workload.parameters().items())
    workload.step()
    assert workload.last_step() == told
    assert same(trained(workload), first)
    # Moments and step count of the optimizer tell in the second step at the latest.
    workload.step()
    assert same(trained(workload), second)


def test_nothing_is_read_before_the_first_step(small: Any) -> None:
    workload = ReferenceWorkload(**small())
    with pytest.raises(RuntimeError, match=r"call step\(\) first"):
        workload.last_step()
    with pytest.raises(RuntimeError, match=r"call step\(\) first"):
        workload.gradients()


def test_facts_are_json_and_say_what_ran(configured: Any) -> None:
    workload = ReferenceWorkload(**configured())
    facts = json.loads(json.dumps(workload.facts()))
    assert facts["parameters"] == sum(p.numel() for p in workload.parameters().values())
    assert 500_000 <= facts["parameters"] <= 2_000_000
    assert facts["threads"] == 1
    assert facts["low_precision"] == workload.low_precision == "emulated"
    assert (facts["formats"]["mlp_up"], facts["formats"]["head"]) == ("fp8", "bf16")
    assert len(facts["dataset"]["sha256"]) == 64
    assert workload.tokens_per_step == facts["tokens_per_step"]
    workload.synchronize()
    workload.close()


def test_cuda_without_a_device_is_unavailable_with_a_remedy(billion: dict[str, Any]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(Unavailable) as caught:
        ReferenceWorkload(**billion)
    assert "device: cuda was asked for" in caught.value.reason
    assert "workload=reference_cpu" in caught.value.remedy


def test_a_graph_is_unavailable_on_a_cpu_with_a_remedy(small: Any) -> None:
    with pytest.raises(Unavailable, match=r"graph is true with device 'cpu'") as caught:
        ReferenceWorkload(**small(graph=True))
    assert "workload=reference_1b" in caught.value.remedy


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("weights", ["per_use", "cached"])
def test_replayed_microsteps_give_the_gradients_of_direct_ones(small: Any, weights: str) -> None:
    ops = {"recurrence": "chunked", "quantize": "reference"}
    direct, replayed = (
        ReferenceWorkload(**small(device="cuda", ops=ops, quant={"weights": weights}, graph=graph))
        for graph in (False, True)
    )
    for _ in range(3):
        direct.step()
        replayed.step()
    assert replayed.last_step() == pytest.approx(direct.last_step(), rel=1e-2)
    for name, gradient in direct.gradients().items():
        torch.testing.assert_close(gradient, replayed.gradients()[name], rtol=5e-2, atol=1e-3)
