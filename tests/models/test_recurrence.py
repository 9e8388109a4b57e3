from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from models.mixer import causal_convolution
from models.recurrence import chunked, reference


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


def test_causal_convolution_agrees_with_conv1d_in_value_and_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    x, taps = torch.randn(2, 9, 6, generator=generator), torch.randn(4, 6, generator=generator)
    dy = torch.randn(2, 9, 6, generator=generator)
    ours = [x.clone().requires_grad_(), taps.clone().requires_grad_()]
    causal_convolution(*ours).backward(dy)
    theirs = [x.clone().requires_grad_(), taps.clone().requires_grad_()]
    padded = F.pad(theirs[0].transpose(1, 2), (3, 0))
    y = F.conv1d(padded, theirs[1].t()[:, None], groups=6).transpose(1, 2)
    y.backward(dy)
    torch.testing.assert_close(causal_convolution(x, taps), y)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_convolution_of_a_sequence_shorter_than_its_taps() -> None:
    # y_0 = 4 * 1, y_1 = 3 * 1 + 4 * 10, with taps 1 2 3 4, the last on the present token.
    y = causal_convolution(torch.tensor([[[1.0], [10.0]]]), torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
    assert y.flatten().tolist() == [4.0, 43.0]
