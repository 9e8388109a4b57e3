from __future__ import annotations

import collections
import copy
import json
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.errors import Unavailable
from models.workload import ReferenceWorkload


class Calls(TorchDispatchMode):
    """Counts the ops of a step: quantizations, and matrix products by the dtype of their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[f"{func} {args[0].dtype}" if func is torch.ops.aten.mm.default else str(func)] += 1
        return func(*args, **(kwargs or {}))


def counted(config: dict[str, Any]) -> collections.Counter[str]:
    workload = ReferenceWorkload(**config)
    with Calls() as calls:
        workload.step()
    return calls.counts


def stepped(config: dict[str, Any]) -> ReferenceWorkload:
    workload = ReferenceWorkload(**config)
    workload.step()
    return workload


# In the preset 3 recurrent blocks have 4 fp8 projections (mixer_in, gate, up, down) and the attention block has 4
# (attention_in, gate, up, down): 16. In a microstep each quantizes its two operands in the forward pass and again in
# the recompute, then gradient and weight in the backward pass: 6. Without a tail a recurrent block has 3 more
# (gate, decay, out), the attention block 1 more, and the head, which is not recomputed, quantizes 4 times.
@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({}, 2 * 16 * 6),
        ({"precision": {"tail": []}}, 2 * ((16 + 3 * 3 + 1) * 6 + 4)),
        ({"checkpoint": {"policy": "none"}}, 2 * 16 * 4),
        ({"checkpoint": {"fraction": 0.5}}, 2 * (8 * 6 + 8 * 4)),
        # Per row the backward pass quantizes gradient, activation and weight for their other axes: 4 in place of 2.
        ({"quant": {"scales": "per_row"}}, 2 * 16 * 8),
        ({"precision": {"gemm": "bf16"}}, 0),
    ],
)
def test_quantizations_of_a_step_agree_with_the_hand_count(small: Any, sections: Any, expected: int) -> None:
    assert counted(small(**sections))["models.quantize.default"] == expected


@pytest.mark.parametrize(("higher", "dtype"), [("bf16", "torch.bfloat16"), ("fp32", "torch.float32")])
def test_tail_sites_run_in_the_higher_precision(small: Any, higher: str, dtype: str) -> None:
    counts = counted(small(precision={"higher": higher}))
    # 3 * (gate, decay, out) + attention_out: forward, recompute, two products backward. The head is not recomputed.
    tail = 2 * (10 * 4 + 3)
    # The 16 fp8 projections are emulated by float32 products of the same number.
    emulated = 2 * 16 * 4
    assert counts[f"aten.mm.default {dtype}"] == tail + (emulated if higher == "fp32" else 0)
    assert sum(n for name, n in counts.items() if name.startswith("aten.mm")) == tail + emulated


def test_loss_goes_down(configured: Any) -> None:
    workload = ReferenceWorkload(**configured())
    losses = []
    for _ in range(20):
        workload.step()
        losses.append(workload.last_step()["loss"])
    assert sum(losses[-5:]) / 5 < losses[0] - 1.0


def test_checkpointing_does_not_change_a_bit_of_the_gradients(small: Any) -> None:
    full, half, none = (
        stepped(small(checkpoint=checkpoint)).gradients()
        for checkpoint in ({"policy": "full"}, {"policy": "full", "fraction": 0.5}, {"policy": "none"})
    )
    assert full.keys() == none.keys()
    assert all(torch.equal(full[name], none[name]) and torch.equal(half[name], none[name]) for name in full)


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
    reference = ReferenceWorkload.reference(small())
    assert reference["ops"] == {"prenorm": "reference", "recurrence": "reference"}
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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_replayed_microsteps_give_the_gradients_of_direct_ones(small: Any) -> None:
    direct, replayed = (ReferenceWorkload(**small(device="cuda", graph=graph)) for graph in (False, True))
    for _ in range(3):
        direct.step()
        replayed.step()
    assert replayed.last_step() == pytest.approx(direct.last_step(), rel=1e-2)
    for name, gradient in direct.gradients().items():
        torch.testing.assert_close(gradient, replayed.gradients()[name], rtol=5e-2, atol=1e-3)
