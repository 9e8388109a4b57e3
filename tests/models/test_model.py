from __future__ import annotations

from typing import Any

import pytest
import torch

from models import model as model_module
from models.config import WorkloadConfig
from models.model import Model
from models.precision import Precision
from models.workload import ReferenceWorkload


def build(config: dict[str, Any]) -> Model:
    typed = WorkloadConfig.from_dict(config)
    model = Model(typed, Precision(typed))
    model.initialize(typed.seed)
    return model


def test_logits_before_a_changed_token_do_not_change(small: Any) -> None:
    # Without quantization: one scale for a whole tensor lets every token see the largest.
    model = build(ReferenceWorkload.exact(small()))
    tokens = torch.randint(256, (1, 40), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[0, 20] = (changed[0, 20] + 1) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :20], after[:, :20], rtol=1e-5, atol=1e-5)
    assert (before[:, 20:] - after[:, 20:]).abs().amax(dim=(0, 2)).min() > 1e-4


def test_model_starts_as_a_blank_guess(small: Any) -> None:
    # ln 256 = 5.545 for a uniform guess; logits of unit deviation add about one half.
    model = build(small())
    tokens = torch.randint(256, (4, 41), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert 5.3 < model.loss(tokens[:, :-1], tokens[:, 1:]).item() < 6.5


def test_loss_in_pieces_is_the_loss_and_its_gradients(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = torch.randint(256, (8, 41), generator=torch.Generator().manual_seed(0))
    results = []
    for limit in (64 * 1024 * 1024, 128 * 256):  # 320 rows at once, or pieces of 128, 128 and 64
        monkeypatch.setattr(model_module, "_LOGITS_AT_ONCE", limit)
        model = build(ReferenceWorkload.exact(small()))
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        results.append((loss.detach(), model.head.weight.grad, model.embedding_OD.grad))
    for whole, pieces in zip(*results, strict=True):
        torch.testing.assert_close(whole, pieces, rtol=1e-4, atol=1e-6)


def test_billion_preset_has_about_1_000_900_000_parameters(billion: dict[str, Any]) -> None:
    with torch.device("meta"):
        typed = WorkloadConfig.from_dict({**billion, "device": "cpu", "graph": False})
        model = Model(typed, Precision(typed))
    count = sum(p.numel() for p in model.parameters())
    # 2 * 49152 * 1536 embedding and head; 24 * 3 * 1536 * 5632 MLP; 6 * 4 * 1536^2 attention;
    # 18 * (1536 * 6144 + 4 * 3072 + 1536 * 12 + 12) recurrent; 49 * 1536 norms.
    assert count == 150_994_944 + 622_854_144 + 56_623_104 + 170_422_488 + 75_264
    assert count == pytest.approx(1.0009e9, rel=1e-3)


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ({"prenorm": "refrence"}, r"ops\.prenorm is 'refrence'; implemented: .*Did you mean reference\?"),
        ({"recurrence": "chunk"}, r"ops\.recurrence is 'chunk'; implemented: reference, .*Did you mean chunked\?"),
        ({"quantize": "gpu"}, r"ops\.quantize is 'gpu'; implemented: reference, cpu, triton\. Did you mean cpu\?"),
        ({"gated": "seperate"}, r"ops\.gated is 'seperate'; implemented: separate, .*Did you mean separate\?"),
        (
            {"recurrence": "chunked", "recurrence_backward": "live_state"},
            r"ops\.recurrence is 'chunked', .*: ops\.recurrence_backward is 'live_state'",
        ),
        ({"recurrence": "reference", "recurrence_registers": 8}, r"ops\.recurrence_registers 8, but they must be"),
    ],
)
def test_an_op_that_does_not_exist_names_those_that_do(small: Any, ops: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(small(ops=ops))


def test_billion_preset_predicts_16_times_1024_tokens_a_microstep(billion: dict[str, Any]) -> None:
    batch = WorkloadConfig.from_dict(billion).batch
    assert (batch.sequences, batch.tokens, batch.microsteps) == (16, 1024, 1)
