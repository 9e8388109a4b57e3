"""The error of every implementation of a kernel family over its cases, against its own reference in float64.

An error is given as a share of what the case allows: |got - want| / (absolute + relative * |want|), largest over all
elements, outputs and gradients apart. Above 1 the family is red.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernels.cases import Case, Tolerance
from kernels.errors import Unavailable


def error_rows(family: str, module_name: str) -> list[dict[str, Any]]:
    """One row an implementation that runs on this machine's CPU."""
    module = importlib.import_module(module_name)
    rows = []
    for name, function in module.IMPLEMENTATIONS.items():
        if name == "reference" or "cpu" not in module.DEVICES[name]:
            continue
        cases = [case for case in module.CASES if name in case.implementations]
        try:
            shares = [case_errors(function, module.reference, case) for case in cases]
        except Unavailable as lacking:
            raise SystemExit(f"{family} {name}: {lacking}") from lacking
        outputs = max(one for one, _ in shares)
        gradients = [one for _, one in shares if one is not None]
        worst = max(gradients) if gradients else None
        rows.append(
            {
                "family": family,
                "implementation": name,
                "cases": len(cases),
                "outputs": outputs,
                "gradients": worst,
                # Written so that NaN is red.
                "green": outputs <= 1 and (worst is None or worst <= 1),
            }
        )
    return rows


def case_errors(function: Callable[..., Any], reference: Callable[..., Any], case: Case) -> tuple[float, float | None]:
    """(largest share of outputs, largest share of gradients or None where there are none)."""
    inputs = case.inputs("cpu")
    got, got_gradients = _run(function, case, inputs)
    exact = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    want, want_gradients = _run(reference, case, exact)
    outputs = max(_share(one, two, case.outputs) for one, two in zip(got, want, strict=True))
    if case.gradients is None:
        return outputs, None
    return outputs, max(
        _share(one, two, case.gradients) for one, two in zip(got_gradients, want_gradients, strict=True)
    )


def _run(function: Callable[..., Any], case: Case, inputs: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    leaves = list(inputs.values())
    if case.gradients is not None:
        leaves = [x.detach().requires_grad_() for x in leaves]
    returned = function(*leaves, **case.options)
    outputs = [returned] if isinstance(returned, Tensor) else list(returned)
    if case.gradients is None:
        return outputs, []
    generator = torch.Generator().manual_seed(3)
    cotangents = [torch.randn(one.shape, generator=generator).to(one.dtype) for one in outputs]
    found = torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True)
    gradients = [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]
    return [one.detach() for one in outputs], gradients


def _share(got: Tensor, want: Tensor, tolerance: Tolerance) -> float:
    if got.numel() == 0:
        return 0.0
    apart = (got.double() - want.double()).abs()
    return float((apart / (tolerance.absolute + tolerance.relative * want.double().abs())).max())
