"""Configs of the shipped presets, as the plain dicts that the harness hands over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

PRESETS = Path(__file__).parents[2] / "conf" / "workload"

Configure = Callable[..., dict[str, Any]]


def preset(name: str) -> dict[str, Any]:
    config = yaml.safe_load((PRESETS / f"{name}.yaml").read_text())["workload"]
    assert config.pop("_target_") == "models.workload.ReferenceWorkload"
    return config


@pytest.fixture(name="configured")
def _configured() -> Configure:
    """A function: the CPU preset with sections overridden, `configured(batch={"tokens": 8}, graph=False)`."""
    return lambda **sections: override(preset("reference_cpu"), sections)


@pytest.fixture(name="small")
def _small() -> Configure:
    """The same at 40 tokens: a chunk of 32 and one cut short."""

    def configure(**sections: Any) -> dict[str, Any]:
        return override(override(preset("reference_cpu"), {"batch": {"tokens": 40}}), sections)

    return configure


@pytest.fixture(name="billion")
def _billion() -> dict[str, Any]:
    return preset("reference_1b")


def override(config: dict[str, Any], sections: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(config)
    for key, value in sections.items():
        result[key] = {**result[key], **value} if isinstance(value, dict) else value
    return result
