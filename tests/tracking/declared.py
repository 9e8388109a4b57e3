"""What the made-up campaigns declare: their model, protocol and hypotheses."""

from __future__ import annotations

import json
from typing import Any

from campaign.records import Edit, ExpectedChange, Hypothesis, ParityClaim, Protocol

MIB = 1 << 20
MODEL: dict[str, Any] = {
    "model": {"layers": 4, "width": 256, "precision": {"policy": "fp32"}, "checkpointing": "blocks"},
    "ops": {"prenorm": "eager", "loss": "eager"},
    "batch": 2,
    "tokens": 256,
}


def protocol(**changes: Any) -> Protocol:
    values: dict[str, Any] = {
        "name": "standard", "decisive": True, "clock": "cpu", "looks": (4, 6, 8, 12), "alpha": 0.01, "beta": 0.05,
        "alpha_split": (0.2, 0.2, 0.2, 0.4), "beta_split": (0.2, 0.2, 0.2, 0.4), "min_effect": 0.03, "pairs": 40,
        "block_steps": 1, "block_minimum_seconds": 0.0, "warmup_minimum_steps": 5, "warmup_window_steps": 5,
        "warmup_tolerance": 0.05, "warmup_limit_steps": 50, "confirm_rounds": 4, "confirm_alpha": 0.05,
        "invalid_share_limit": 0.2, "contention_limit": 1.3, "gate_alpha": 0.001, "memory_min_effect": 0.02,
        "memory_min_bytes": 8 * MIB, "memory_noninferiority": 0.02, "memory_margin": 0.05, "probe_steps": 3,
        "start_deadline_seconds": 60.0, "reply_deadline_seconds": 60.0, "seed": 1,
    }  # fmt: skip
    return Protocol(**(values | changes))


def hypothesis(name: str, overrides: tuple[str, ...], claim: str, predicted: float) -> Hypothesis:
    return Hypothesis(
        name=name,
        claim=claim,
        mechanism="One pass over memory in place of three.",
        acts_on="bandwidth",
        edit=Edit(overrides=overrides),
        predicted_ratio=predicted,
        parity=ParityClaim("rounding"),
        predicted_evidence=(ExpectedChange("op:kernels::prenorm_cpu", "appears", 0, 9),),
    )


def changed(config: dict[str, Any], overrides: tuple[str, ...]) -> dict[str, Any]:
    """`config` with `a.b=value` set: enough for made-up arms."""
    copy = json.loads(json.dumps(config))
    for override in overrides:
        path, _, value = override.partition("=")
        *inner, last = path.split(".")
        place = copy
        for key in inner:
            place = place[key]
        place[last] = value
    return copy
