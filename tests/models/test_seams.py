"""How often each seam quantizes and multiplies, by hand counts, and which of them change no bit."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from models.config import WorkloadConfig
from models.model import Model
from models.precision import Precision
from models.workload import ReferenceWorkload
from tests.models.observing import Calls, counted, same, stepped, trained

SHARED, CACHED = {"activations": "shared"}, {"weights": "cached"}
ROWS, BLOCKS = {"scales": "per_row"}, {"scales": "per_block"}
SELECTIVE = {"policy": "selective"}


# The preset has 2 microsteps, 3 recurrent blocks and 1 attention block. 16 projections are fp8: in a recurrent block
# mixer_in, gate, up and down; in the attention block attention_in, gate, up and down. 11 are bf16: 3 times mixer gate,
# decay and out; attention_out; the head, which is not recomputed. Without a tail all 27 are fp8.
#
# In a microstep a projection quantizes its weight in forward, recompute and backward; its activation in forward and
# recompute; its gradient once. gate and up of a block share an activation, so 16 sites read 12 activations; without a
# tail mixer_in, gate and decay share one too, so 26 sites read 16 (4 a block), and the head reads its own.
@pytest.mark.parametrize(
    ("sections", "weights", "activations", "gradients"),
    [
        ({}, 2 * 16 * 3, 2 * 16 * 2, 2 * 16),
        ({"precision": {"gemm": "bf16"}}, 0, 0, 0),
        ({"precision": {"tail": []}}, 2 * (26 * 3 + 2), 2 * (26 * 2 + 1), 2 * 27),
        ({"quant": SHARED}, 2 * 16 * 3, 2 * 12 * 2, 2 * 16),
        ({"quant": SHARED, "precision": {"tail": []}}, 2 * (26 * 3 + 2), 2 * (16 * 2 + 1), 2 * 27),
        ({"quant": CACHED}, 16, 2 * 16 * 2, 2 * 16),
        ({"quant": CACHED, "precision": {"tail": []}}, 27, 2 * (26 * 2 + 1), 2 * 27),
        # mlp_down reads what the fused gate wrote; without a tail mixer_out as well.
        ({"ops": {"gated": "cpu"}}, 2 * 16 * 3, 2 * 12 * 2, 2 * 16),
        ({"ops": {"gated": "cpu"}, "precision": {"tail": []}}, 2 * (26 * 3 + 2), 2 * (19 * 2 + 1), 2 * 27),
        ({"checkpoint": {"policy": "none"}}, 2 * 16 * 2, 2 * 16, 2 * 16),
        ({"checkpoint": {"fraction": 0.0}}, 2 * 16 * 2, 2 * 16, 2 * 16),
        ({"checkpoint": {"fraction": 0.5}}, 2 * (8 * 3 + 8 * 2), 2 * (8 * 2 + 8), 2 * 16),
        # The recompute multiplies nothing, but the gradient of the weight still wants the activation quantized.
        ({"checkpoint": SELECTIVE}, 2 * 16 * 2, 2 * 16 * 2, 2 * 16),
        # Scales of rows: weight, activation and gradient are quantized across as well, for the backward pass.
        ({"quant": ROWS}, 2 * 16 * 3, 2 * 16 * 3, 2 * 16 * 2),
        ({"quant": BLOCKS}, 2 * 16 * 3, 2 * 16 * 3, 2 * 16 * 2),
        ({"quant": {**ROWS, **SHARED}}, 2 * 16 * 3, 2 * 12 * 3, 2 * 16 * 2),
        ({"quant": {**ROWS, **CACHED}}, 16 * 2, 2 * 16 * 3, 2 * 16 * 2),
        # Selective: along in the forward pass, across in the backward pass, nothing in between.
        ({"quant": ROWS, "checkpoint": SELECTIVE}, 2 * 16 * 2, 2 * 16 * 2, 2 * 16 * 2),
        ({"quant": {**ROWS, **SHARED, **CACHED}, "checkpoint": SELECTIVE}, 16 * 2, 2 * 12 * 2, 2 * 16 * 2),
    ],
)
def test_quantizations_of_a_step_agree_with_the_hand_count(
    small: Any, sections: Any, weights: int, activations: int, gradients: int
) -> None:
    assert counted(small(**sections)).roles() == (weights, activations, gradients)


# A projection multiplies in forward and recompute, and twice in the backward pass.
@pytest.mark.parametrize(
    ("sections", "fp8", "bf16"),
    [
        ({}, 2 * 16 * 4, 2 * (10 * 4 + 3)),
        ({"checkpoint": SELECTIVE}, 2 * 16 * 3, 2 * 11 * 3),
        ({"checkpoint": {"policy": "none"}}, 2 * 16 * 3, 2 * 11 * 3),
        ({"checkpoint": {**SELECTIVE, "fraction": 0.5}}, 2 * 16 * 3, 2 * 11 * 3),
        # Two recurrent blocks are recomputed: 2 * 4 and 2 * 3 products more.
        ({"checkpoint": {"fraction": 0.5}}, 2 * (16 * 3 + 8), 2 * (11 * 3 + 6)),
    ],
)
def test_matrix_products_of_a_step_agree_with_the_hand_count(small: Any, sections: Any, fp8: int, bf16: int) -> None:
    counts = counted(small(**sections)).counts
    # fp8 is emulated by products of float32.
    assert (counts["aten.mm torch.float32"], counts["aten.mm torch.bfloat16"]) == (fp8, bf16)


# 3 recurrent blocks, 2 microsteps: forward and recompute, one backward.
@pytest.mark.parametrize(
    ("ops", "forward", "backward"),
    [
        ({"recurrence": "cpu"}, 12, "kernels.recurrence_cpu_backward"),
        ({"recurrence_backward": "phase_split"}, 12, "kernels.recurrence_cpu_backward_phase_split"),
        ({"recurrence_backward": "live_state"}, 12, "kernels.recurrence_cpu_backward_live_state"),
        ({"recurrence_registers": 12}, 12, "kernels.recurrence_cpu_backward"),
        ({"recurrence": "chunked"}, 0, None),
    ],
)
def test_the_recurrence_runs_as_named(small: Any, ops: Any, forward: int, backward: str | None) -> None:
    counts = counted(small(ops=ops)).counts
    assert counts["kernels.recurrence_cpu"] == forward
    ran = {name: count for name, count in counts.items() if name.startswith("kernels.recurrence_cpu_backward")}
    assert ran == ({backward: 6} if backward else {})


def test_the_fused_gate_runs_where_its_consumer_is_fp8(small: Any) -> None:
    # Forward and recompute, one backward, 2 microsteps: 4 times mlp_down; without a tail 3 times mixer_out as well.
    for sections, gates in (({}, 4), ({"precision": {"tail": []}}, 7), ({"precision": {"gemm": "bf16"}}, 0)):
        counts = counted(small(ops={"gated": "cpu"}, **sections)).counts
        assert counts["kernels.gated_quantize_cpu"] == 2 * 2 * gates
        assert counts["kernels.gated_backward_cpu"] == 2 * gates


@pytest.mark.parametrize("scales", ["per_tensor", "per_row", "per_block"])
def test_how_often_and_when_changes_no_bit(small: Any, scales: str) -> None:
    plain = trained(stepped(small(quant={"scales": scales}), 2))
    for quant, checkpoint in (
        (SHARED, {}),
        (CACHED, {}),
        ({}, SELECTIVE),
        ({}, {"fraction": 0.5}),
        ({}, {"policy": "none"}),
        ({**SHARED, **CACHED}, {**SELECTIVE, "fraction": 0.5}),
    ):
        other = stepped(small(quant={"scales": scales, **quant}, checkpoint=checkpoint), 2)
        assert same(trained(other), plain), f"{quant} {checkpoint} differs"


def test_nothing_depends_on_whether_somebody_watches(small: Any) -> None:
    config = small(quant={**SHARED, **CACHED}, ops={"gated": "cpu", "prenorm": "cpu"}, checkpoint=SELECTIVE)
    watched = ReferenceWorkload(**config)
    with Calls():
        watched.step()
        watched.step()
    assert same(trained(watched), trained(stepped(config, 2)))


@pytest.mark.parametrize(
    ("sections", "bound"),
    [
        # Other rounding of the same sums, but past a tie an e4m3 value is the next one, 1/16 away.
        ({"ops": {"gated": "cpu"}}, 0.05),
        ({"ops": {"recurrence": "chunked"}}, 0.05),
        # Other formats: as far from each other as each is from the exact step.
        ({"quant": {"format": "fp8_e5m2"}}, 0.5),
        ({"quant": BLOCKS}, 0.5),
    ],
)
def test_other_kernels_and_formats_stay_near(small: Any, sections: Any, bound: float) -> None:
    ours, theirs = (
        torch.cat([g.flatten() for g in stepped(config).gradients().values()])
        for config in (small(**sections), small())
    )
    error = ((ours - theirs).norm() / theirs.norm()).item()
    assert 0 < error < bound


def test_the_quantizers_give_the_same_bits(small: Any) -> None:
    compiled, plain = (trained(stepped(small(ops={"quantize": name}))) for name in ("cpu", "reference"))
    assert same(compiled, plain)


def test_selective_keeps_the_results_of_the_products_and_nothing_else(small: Any) -> None:
    """Bytes of all storages that are kept for the backward pass, at 1 x 40 tokens."""
    tokens = torch.randint(256, (1, 41), generator=torch.Generator().manual_seed(0))

    def kept(policy: str) -> dict[int, Tensor]:
        config = WorkloadConfig.from_dict(small(checkpoint={"policy": policy, "fraction": 0.75}))
        model = Model(config, Precision(config))
        model.initialize(0)
        tensors: list[Tensor] = []

        def keep(x: Tensor) -> Tensor:
            tensors.append(x)
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            model.loss(tokens[:, :-1], tokens[:, 1:])
        return {x.untyped_storage().data_ptr(): x for x in tensors}

    full, selective = (
        sum(x.untyped_storage().nbytes() for x in kept(policy).values()) for policy in ("full", "selective")
    )
    # Three recurrent blocks: q, k and v 3 * 64, gate 96, decay 3, out 96, mlp gate and up 2 * 272. mlp_down 96 is the
    # next block's input, kept anyway but for the last, behind which the attention block keeps all but its input.
    assert selective - full == 4 * 40 * (3 * (192 + 96 + 3 + 96 + 544) + 96)


def test_facts_say_all_seams(small: Any) -> None:
    workload = ReferenceWorkload(
        **small(
            ops={"recurrence_backward": "phase_split", "recurrence_registers": 12, "gated": "cpu"},
            quant={**SHARED, **CACHED, **ROWS},
            checkpoint={**SELECTIVE, "fraction": 0.5},
        )
    )
    facts = json.loads(json.dumps(workload.facts()))
    assert facts["ops"] == {
        "prenorm": "reference",
        "recurrence": "cpu",
        "recurrence_backward": "phase_split",
        "recurrence_registers": 12,
        "quantize": "cpu",
        "gated": "cpu",
    }
    assert facts["quant"] == {
        "format": "fp8_e4m3",
        "weights": "cached",
        "activations": "shared",
        "scales": "per_row",
    }
    assert (facts["checkpoint"], facts["recomputed_blocks"]) == ("selective", 2)
    assert (facts["compile"], facts["graph"], facts["low_precision"]) == ("none", False, "emulated")
