"""A cached weight is never an old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from models.precision import Projection
from models.workload import ReferenceWorkload
from tests.models.observing import Calls, same, stepped, trained

TOKENS = torch.randint(256, (1, 41), generator=torch.Generator().manual_seed(0))


def down(workload: ReferenceWorkload) -> nn.Parameter:
    return workload.model.get_parameter("blocks.0.mlp.down.weight")


def edit_in_place(workload: ReferenceWorkload) -> None:
    with torch.no_grad():
        down(workload).mul_(2)


def replace(workload: ReferenceWorkload) -> None:
    down(workload).data = down(workload).detach() * 2


def load(workload: ReferenceWorkload) -> None:
    workload.model.load_state_dict({name: value * 2 for name, value in workload.model.state_dict().items()})


def step_the_optimizer(workload: ReferenceWorkload) -> None:
    workload._optimizer.step()


def restart(workload: ReferenceWorkload) -> None:
    workload.restart()


def loss(workload: ReferenceWorkload) -> float:
    """Without a step, which would refresh the cache."""
    return workload.model.loss(TOKENS[:, :-1], TOKENS[:, 1:]).item()


@pytest.mark.parametrize("edit", [edit_in_place, replace, load, step_the_optimizer, restart])
def test_a_changed_weight_is_quantized_again_at_its_next_use(
    small: Any, edit: Callable[[ReferenceWorkload], None]
) -> None:
    cached, per_use = (stepped(small(quant={"weights": weights})) for weights in ("cached", "per_use"))
    before = loss(cached)
    assert before == loss(per_use)
    for workload in (cached, per_use):
        edit(workload)
    assert loss(cached) == loss(per_use) != before


def test_between_two_microsteps_a_changed_weight_is_quantized_again_and_no_other(small: Any) -> None:
    workload = stepped(small(quant={"weights": "cached"}))
    loss(workload)
    edit_in_place(workload)
    with Calls() as calls:
        loss(workload)
    assert calls.roles()[0] == 1


def test_an_edit_behind_the_version_is_found_at_the_next_step(small: Any) -> None:
    cached, per_use = (stepped(small(quant={"weights": weights})) for weights in ("cached", "per_use"))
    for workload in (cached, per_use):
        loss(workload)  # the cache is up to date, and nothing will tell that the weight is not
        version = down(workload)._version
        down(workload).data.mul_(2)
        assert down(workload)._version == version
        workload.step()
    assert cached.last_step() == per_use.last_step()
    assert same(trained(cached), trained(per_use))


def test_a_weight_changed_between_forward_and_backward_is_an_error(small: Any) -> None:
    workload = stepped(small(quant={"weights": "cached"}, checkpoint={"policy": "none"}))
    result = workload.model.loss(TOKENS[:, :-1], TOKENS[:, 1:])
    edit_in_place(workload)
    loss(workload)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_quantized_weights_stay_where_they_are_for_a_captured_graph(small: Any) -> None:
    workload = ReferenceWorkload(**small(quant={"weights": "cached", "scales": "per_row"}))
    projection = workload.model.get_submodule("blocks.0.mlp.down")
    assert isinstance(projection, Projection)

    def addresses() -> list[int]:
        sides = [side for side in projection.quantized if side is not None]
        return [part.data_ptr() for side in sides for part in side if part is not None]

    along = projection.quantized.along
    assert along is not None
    before, payload = addresses(), along.payload.clone()
    workload.step()
    workload.step()
    assert addresses() == before and len(before) == 4
    assert not torch.equal(along.payload, payload)
