from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernels.recurrence import reference
from kernels.recurrence_forms import chunked


def test_reference_agrees_with_hand_values() -> None:
    # K = V = 1, decay 1/2, everything else 1: S is 1, 1.5, 1.75.
    ones = torch.ones(1, 3, 1, 1)
    o = reference(ones, ones, ones, torch.full((1, 3, 1), 0.5).log())
    assert o.flatten().tolist() == [1.0, 1.5, 1.75]


def test_first_token_of_the_reference_reads_only_itself() -> None:
    # o_1 = (q . k) v with q . k = 1*3 + 2*4 = 11.
    q, k, v = (torch.tensor(x).view(1, 1, 1, -1) for x in ([1.0, 2.0], [3.0, 4.0], [1.0, -1.0, 2.0]))
    assert reference(q, k, v, torch.tensor([[[-5.0]]])).flatten().tolist() == [11.0, -11.0, 22.0]


@pytest.mark.parametrize(("tokens", "chunk"), [(1, 8), (7, 8), (8, 8), (9, 8), (33, 8), (64, 16), (50, 16), (5, 1)])
def test_chunked_agrees_with_reference_in_value_and_every_gradient(tokens: int, chunk: int) -> None:
    generator = torch.Generator().manual_seed(tokens)

    def inputs() -> tuple[torch.Tensor, ...]:
        return (
            *(torch.randn(2, tokens, 3, width, generator=generator) for width in (4, 4, 5)),
            F.logsigmoid(torch.randn(2, tokens, 3, generator=generator) * 2),
        )

    given = inputs()
    do = torch.randn(2, tokens, 3, 5, generator=generator)
    results = []
    for form in (chunked, reference):
        leaves = [x.clone().requires_grad_() for x in given]
        q, k, v, log_decay = leaves
        o = form(q, k, v, log_decay, chunk)
        o.backward(do)
        results.append((o.detach(), *(leaf.grad for leaf in leaves)))
    for name, ours, theirs in zip(("o", "q", "k", "v", "log_decay"), *results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-4, msg=f"{name} differs at {tokens} tokens")


def test_strong_decay_neither_overflows_nor_gives_nan() -> None:
    x = torch.ones(1, 64, 1, 4)
    log_decay = torch.full((1, 64, 1), -200.0, requires_grad=True)
    o = chunked(x, x, x, log_decay, 16)
    o.sum().backward()
    assert torch.equal(o, torch.full_like(o, 4.0))  # each token reads only its own q . k = 4
    assert log_decay.grad is not None and log_decay.grad.isfinite().all()
