"""The error of every implementation of a kernel family over its cases, against its own reference in float64.

An error is given as a share of what the case allows: |got - want| / (absolute + relative * |want|), the largest over
all elements and cases; 0 where both are equal. There is one share for the outputs and one for the gradient of each
input. Above 1 (or NaN) the family is red.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernels.cases import Case, Tolerance
from kernels.errors import Unavailable

Shares = dict[str, float]


def error_rows(family: str, module_name: str, device: str) -> list[dict[str, Any]]:
    """One row for each implementation that runs on `device`."""
    module = importlib.import_module(module_name)
    rows = []
    for name, function in module.IMPLEMENTATIONS.items():
        if name == "reference" or device not in module.DEVICES[name]:
            continue
        shares: Shares = {}
        cases = [case for case in module.CASES if name in case.implementations]
        try:
            for case in cases:
                _keep_largest(shares, case_shares(function, module.reference, case, device))
                if hasattr(module, "BACKWARDS"):
                    _keep_largest(shares, backward_shares(module, name, case, device))
        except Unavailable as lacking:
            raise SystemExit(f"{family} {name}: {lacking}") from lacking
        # Written so that NaN is red.
        green = all(share <= 1 for share in shares.values())
        rows.append({"family": family, "implementation": name, "cases": len(cases), "shares": shares, "green": green})
    return rows


def _keep_largest(into: Shares, found: Shares) -> None:
    for name, share in found.items():
        if not into.get(name, -1.0) >= share:
            into[name] = share


def case_shares(function: Callable[..., Any], reference: Callable[..., Any], case: Case, device: str) -> Shares:
    """The largest share of the outputs, and of each input's gradient where the kernel is differentiable."""
    inputs = case.inputs(device)
    got, got_gradients = _run(function, case, inputs)
    want, want_gradients = _run(reference, case, _exact(inputs))
    found = {"outputs": max(_share(one, two, case.outputs) for one, two in zip(got, want, strict=True))}
    if case.gradients is not None:
        for name, one, two in zip(inputs, got_gradients, want_gradients, strict=True):
            found[name] = _share(one, two, case.gradients)
    return found


def backward_shares(module: Any, name: str, case: Case, device: str) -> Shares:
    """The same for a family whose backward pass is an op of its own, (dy, *inputs) to a gradient of each input."""
    inputs = case.inputs(device)
    like = next(iter(inputs.values()))
    dy = torch.randn(like.shape, generator=torch.Generator().manual_seed(3)).to(like.device, like.dtype)
    got = module.BACKWARDS[name](dy, *inputs.values())
    want = module.BACKWARDS["reference"](dy.double(), *_exact(inputs).values())
    allowed = module.BACKWARD_TOLERANCES[like.dtype]
    scaled = Tolerance(allowed.relative, allowed.absolute * max(case.scale, 1.0), allowed.reason)
    return {one: _share(g, w, scaled) for one, g, w in zip(inputs, got, want, strict=True)}


def _exact(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}


def _run(function: Callable[..., Any], case: Case, inputs: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    leaves = list(inputs.values())
    if case.gradients is not None:
        leaves = [x.detach().requires_grad_() for x in leaves]
    returned = function(*leaves, **case.options)
    outputs = [returned] if isinstance(returned, Tensor) else list(returned)
    if case.gradients is None:
        return outputs, []
    generator = torch.Generator().manual_seed(3)
    cotangents = [torch.randn(one.shape, generator=generator).to(one.device, one.dtype) for one in outputs]
    found = torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)
    gradients = [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]
    return [one.detach() for one in outputs], gradients


def _share(got: Tensor, want: Tensor, tolerance: Tolerance) -> float:
    if got.numel() == 0:
        return 0.0
    got, want = got.double(), want.double()
    allowed = tolerance.absolute + tolerance.relative * want.abs()
    # A kernel that must be exact allows nothing: 0 / 0 is no error.
    shares = torch.where(got == want, torch.zeros_like(want), (got - want).abs() / allowed)
    return float(shares.max()) if not shares.isnan().any() else float("nan")
