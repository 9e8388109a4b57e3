from __future__ import annotations

import torch
import torch.nn.functional as F

from models.mixer import causal_convolution


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
