from __future__ import annotations

from typing import Any

import pytest

from models.config import CheckpointConfig, WorkloadConfig


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"model": {"widht": 64}}, r"unknown key model\.widht; did you mean model\.width\?"),
        ({"thread": 1}, r"unknown key thread; did you mean threads\?"),
        ({"zzz": 1}, r"unknown key zzz; known keys: name, device, "),
        ({"quant": {"weights": "cache"}}, r"quant\.weights is 'cache'; .* per_use, cached\. Did you mean cached\?$"),
        ({"quant": {"activations": "sharde"}}, r"quant\.activations is 'sharde'; .*Did you mean shared\?$"),
        ({"quant": {"format": "int8"}}, r"quant\.format is 'int8'; .*: fp8_e4m3, fp8_e5m2, nvfp4, mxfp4\.$"),
        ({"quant": {"scales": "per_blok"}}, r"quant\.scales is 'per_blok'; .*Did you mean per_block\?$"),
        (
            {"ops": {"recurrence_backward": "live"}},
            r"ops\.recurrence_backward is 'live'; implemented: fused, phase_split",
        ),
        ({"ops": {"recurrence_registers": -1}}, r"ops\.recurrence_registers is -1; a whole number of at least 0"),
        ({"ops": {"gate": "cpu"}}, r"unknown key ops\.gate; did you mean ops\.gated\?"),
        ({"checkpoint": {"policy": "selectiv"}}, r"checkpoint\.policy is 'selectiv'; .*Did you mean selective\?$"),
        ({"compile": "blocks"}, r"compile is 'blocks'; implemented: none, block\. Did you mean block\?$"),
        ({"model": {"layers": 0}}, r"model\.layers is 0; a whole number of at least 1"),
        ({"model": {"layers": 2.5}}, r"model\.layers is 2\.5; it must be a whole number"),
        ({"model": {"layers": True}}, r"model\.layers is True; it must be a whole number"),
        ({"model": {"vocabulary": 255}}, r"model\.vocabulary is 255; a whole number of at least 256"),
        ({"precision": {"tail": ["mixer_inn"]}}, r"precision\.tail is \['mixer_inn'\]; a list out of mixer_in, "),
        ({"precision": {"tail": "head"}}, r"precision\.tail is 'head'; it must be a list"),
        ({"checkpoint": {"fraction": 1.1}}, r"checkpoint\.fraction is 1\.1; between 0 and 1"),
        ({"optimizer": {"betas": [0.9]}}, r"optimizer\.betas is \[0\.9\]; two numbers"),
        ({"graph": "yes"}, r"graph is 'yes'; it must be true or false"),
        ({"batch": 7}, r"batch is 7; it must be a mapping"),
    ],
)
def test_bad_config_is_refused_with_its_value_and_rule(configured: Any, sections: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WorkloadConfig.from_dict(configured(**sections))


def test_missing_key_is_named(configured: Any) -> None:
    config = configured()
    del config["model"]["width"]
    with pytest.raises(ValueError, match=r"missing key model\.width in model"):
        WorkloadConfig.from_dict(config)


def test_whole_numbers_are_accepted_where_a_fraction_may_stand(configured: Any) -> None:
    assert WorkloadConfig.from_dict(configured(optimizer={"clip": 2})).optimizer.clip == 2.0


def test_every_fourth_block_is_attention(billion: dict[str, Any]) -> None:
    model = WorkloadConfig.from_dict(billion).model
    assert [i for i in range(model.layers) if model.is_attention(i)] == [3, 7, 11, 15, 19, 23]


@pytest.mark.parametrize(
    ("policy", "fraction", "blocks"),
    [("full", 1.0, 24), ("full", 0.5, 12), ("full", 0.0, 0), ("selective", 0.25, 6), ("none", 1.0, 0)],
)
def test_checkpoint_policy_counts_blocks(policy: str, fraction: float, blocks: int) -> None:
    assert CheckpointConfig(policy=policy, fraction=fraction).blocks(24) == blocks
