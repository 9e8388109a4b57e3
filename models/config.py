"""What a workload is made of, as typed records read from plain mappings.

`WorkloadConfig.from_dict` is strict: an unknown key, a missing key, a wrong type and a value that breaks its rule are
each a `ValueError` that names the key by its path, says the rule and, for a misspelt key, the nearest one.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin, get_type_hints

SITES = (
    "mixer_in",
    "mixer_gate",
    "mixer_decay",
    "mixer_out",
    "attention_in",
    "attention_out",
    "mlp_up",
    "mlp_down",
    "head",
)


def _choice(*allowed: str, default: Any = dataclasses.MISSING) -> Any:
    """A word out of a closed list. A list of one is a seam: the key exists, and so far one value is implemented."""
    rule = f"implemented: {', '.join(allowed)}"
    return field(default=default, metadata={"holds": lambda value: value in allowed, "rule": rule})


def _number(holds: Callable[[Any], bool], rule: str, default: Any = dataclasses.MISSING) -> Any:
    return field(default=default, metadata={"holds": holds, "rule": rule})


def _count(default: Any = dataclasses.MISSING) -> Any:
    return _number(lambda value: value >= 1, "a whole number of at least 1", default)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Shapes. Block i (from 0) is attention where (i + 1) is a multiple of `attention_every`, else recurrent."""

    layers: int = _count()
    width: int = _count()
    heads: int = _count()
    key_width: int = _count()
    value_width: int = _count()
    ff_width: int = _count()
    vocabulary: int = _number(lambda value: value >= 256, "a whole number of at least 256, one per byte", 256)
    attention_every: int = _count(4)
    convolution_width: int = _count(4)
    chunk: int = _count(64)

    def is_attention(self, block: int) -> bool:
        return (block + 1) % self.attention_every == 0


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """One step predicts sequences * tokens * microsteps tokens."""

    sequences: int = _count()
    tokens: int = _count()
    microsteps: int = _count(1)


@dataclass(frozen=True, kw_only=True)
class OpsConfig:
    """Implementations by name. Names of `prenorm` are the keys of `kernels.prenorm.IMPLEMENTATIONS`."""

    prenorm: str = "reference"
    recurrence: str = _choice("chunked", "reference", default="chunked")


@dataclass(frozen=True, kw_only=True)
class QuantConfig:
    """How fp8 sites quantize. `weights` and `activations` say how often a tensor is quantized."""

    format: str = _choice("fp8_e4m3", default="fp8_e4m3")
    weights: str = _choice("per_use", default="per_use")
    activations: str = _choice("per_consumer", default="per_consumer")
    scales: str = _choice("per_tensor", "per_row", default="per_tensor")


@dataclass(frozen=True, kw_only=True)
class PrecisionConfig:
    """Sites in `tail` run in `higher`, all others in `gemm`."""

    gemm: str = _choice("fp8", "bf16", "fp32", default="fp8")
    higher: str = _choice("bf16", "fp32", default="bf16")
    tail: tuple[str, ...] = field(
        default=(),
        metadata={"holds": lambda value: set(value) <= set(SITES), "rule": f"a list out of {', '.join(SITES)}"},
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """`full` recomputes the first `fraction` of the blocks in the backward pass, `none` keeps every activation."""

    policy: str = _choice("full", "none", default="full")
    fraction: float = _number(lambda value: 0 < value <= 1, "above 0 and at most 1", 1.0)

    def blocks(self, layers: int) -> int:
        """How many of `layers` blocks are recomputed."""
        return round(self.fraction * layers) if self.policy == "full" else 0


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """AdamW. `clip` bounds the global gradient norm."""

    learning_rate: float = _number(lambda value: value > 0, "above 0", 1e-3)
    betas: tuple[float, ...] = field(
        default=(0.9, 0.95),
        metadata={
            "holds": lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value),
            "rule": "two numbers, each at least 0 and below 1",
        },
    )
    weight_decay: float = _number(lambda value: value >= 0, "at least 0", 0.1)
    clip: float = _number(lambda value: value > 0, "above 0", 1.0)


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig:
    """Everything that decides what one training step computes and how.

    `compiled` names the family of compiled implementations that suits this workload (`ops.*: ${...compiled}` in a
    hypothesis); the workload itself only records it.
    """

    name: str
    device: str = _choice("cpu", "cuda")
    threads: int = _count(1)
    seed: int = _number(lambda value: value >= 0, "a whole number of at least 0", 0)
    compiled: str = _choice("cpu", "triton", default="cpu")
    model: ModelConfig
    batch: BatchConfig
    ops: OpsConfig = OpsConfig()
    quant: QuantConfig = QuantConfig()
    precision: PrecisionConfig = PrecisionConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    graph: bool = False

    def __post_init__(self) -> None:
        if self.graph and self.device != "cuda":
            raise ValueError(f"graph is true with device {self.device!r}: CUDA graph replay needs device: cuda.")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> WorkloadConfig:
        """Reads plain dicts, lists, strings and numbers. Raises `ValueError` as the module says."""
        return _read(cls, mapping, "")


def _read(record: Any, mapping: Any, path: str) -> Any:
    where = path.rstrip(".") or "the workload"
    if not isinstance(mapping, Mapping):
        raise ValueError(f"{where} is {mapping!r}; it must be a mapping of keys to values.")
    fields = {entry.name: entry for entry in dataclasses.fields(record)}
    for key in mapping:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, n=1, cutoff=0.5)
            hint = f"did you mean {path}{near[0]}?" if near else f"known keys: {', '.join(fields)}."
            raise ValueError(f"unknown key {path}{key}; {hint}")
    hints = get_type_hints(record)
    values = {}
    for key, entry in fields.items():
        if key in mapping:
            values[key] = _convert(hints[key], mapping[key], f"{path}{key}", entry.metadata)
        elif entry.default is dataclasses.MISSING:
            raise ValueError(f"missing key {path}{key} in {where}.")
    return record(**values)


def _convert(hint: Any, value: Any, path: str, metadata: Mapping[str, Any]) -> Any:
    if dataclasses.is_dataclass(hint):
        return _read(hint, value, f"{path}.")
    if get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{path} is {value!r}; it must be a list.")
        result: Any = tuple(_convert(get_args(hint)[0], item, path, {}) for item in value)
    elif hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        result = float(value)
    elif isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        result = value
    else:
        raise ValueError(f"{path} is {value!r}; it must be {_NOUNS[hint]}.")
    if metadata and not metadata["holds"](result):
        raise ValueError(f"{path} is {value!r}; {metadata['rule']}.")
    return result


_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
