"""An op under a profiler goes through the dispatcher, so that a trace names it, and computes the same bits."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from kernels import prenorm, quantize
from kernels.errors import Unavailable

DRAW = torch.Generator().manual_seed(3)


def normal(*shape):
    return torch.randn(*shape, generator=DRAW)


def quantized():
    return quantize.IMPLEMENTATIONS["cpu"](X_RC, "fp8_e4m3", "tensor", True)


def normed():
    leaves = [one.clone().requires_grad_() for one in (X_RC, Y_RC, WEIGHT_C)]
    y, h = prenorm.IMPLEMENTATIONS["cpu"](*leaves, 1e-5)
    (y * Y_RC + h).sum().backward()
    return (y.detach(), h.detach(), *(one.grad for one in leaves))


X_RC, Y_RC, WEIGHT_C = normal(6, 32), normal(6, 32), normal(32)


@pytest.mark.parametrize(
    ("act", "wanted"),
    [
        (quantized, {"kernels::quantize_cpu": 1}),
        (normed, {"kernels::prenorm_cpu": 1, "kernels::prenorm_cpu_backward": 1}),
    ],
)
def test_a_profiled_call_is_named_in_the_trace_and_gives_the_same_bits(act, wanted):
    try:
        plain = act()
    except Unavailable as error:
        pytest.skip(error.reason)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        watched = act()
    counts = Counter({event.key: event.count for event in profiled.key_averages()})
    assert {name: counts[name] for name in wanted} == wanted
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
