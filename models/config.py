"""What a workload is made of, as typed records read from plain mappings.

`WorkloadConfig.from_dict` is strict: an unknown key, a missing key, a wrong type and a value that breaks its rule are
each a `ValueError` that names the key by its path, says the rule and, for a misspelt key, the nearest one.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
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


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `known` that was probably meant."""
    found = difflib.get_close_matches(word, tuple(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def refusal(path: str, word: str, known: Iterable[str]) -> str:
    """Says which words there are in place of one that is not known, and which of them was probably meant."""
    names = tuple(known)
    near = nearest(word, names)
    return f"{path} is {word!r}; implemented: {', '.join(names)}." + (f" Did you mean {near}?" if near else "")


def _choice(*allowed: str, default: Any = dataclasses.MISSING) -> Any:
    """A word out of a closed list."""
    return field(default=default, metadata={"choices": allowed})


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
    """Implementations by name, the keys of `IMPLEMENTATIONS` in `kernels.<family>`; `models.ops` looks them up.

    `recurrence_backward` and `recurrence_registers` (0: no cap) are for the compiled recurrences only. `gated` is
    `separate` where activation and quantization stay two passes.
    """

    prenorm: str = "reference"
    recurrence: str = "chunked"
    recurrence_backward: str = _choice("fused", "phase_split", "live_state", default="fused")
    recurrence_registers: int = _number(lambda value: value >= 0, "a whole number of at least 0, 0 for no cap", 0)
    quantize: str = "reference"
    gated: str = "separate"


@dataclass(frozen=True, kw_only=True)
class QuantConfig:
    """How the sites in `fp8` quantize. `weights` and `activations` say how often a tensor is quantized.

    `fp8_e5m2` has gradients in e5m2 and the rest in e4m3. `nvfp4` and `mxfp4` bring scales of their own.
    """

    format: str = _choice("fp8_e4m3", "fp8_e5m2", "nvfp4", "mxfp4", default="fp8_e4m3")
    weights: str = _choice("per_use", "cached", default="per_use")
    activations: str = _choice("per_consumer", "shared", default="per_consumer")
    scales: str = _choice("per_tensor", "per_row", "per_block", default="per_tensor")


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
    """`full` recomputes the first `fraction` of the blocks in the backward pass, `none` keeps every activation.

    `selective` recomputes as many, but for the matrix products: their results are kept.
    """

    policy: str = _choice("full", "selective", "none", default="full")
    fraction: float = _number(lambda value: 0 <= value <= 1, "between 0 and 1", 1.0)

    def blocks(self, layers: int) -> int:
        """How many of `layers` blocks are recomputed."""
        return 0 if self.policy == "none" else round(self.fraction * layers)


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
    compile: str = _choice("none", "block", default="none")
    graph: bool = False

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
            near = nearest(str(key), fields, cutoff=0.5)
            hint = f"did you mean {path}{near}?" if near else f"known keys: {', '.join(fields)}."
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
    if "choices" in metadata and result not in metadata["choices"]:
        raise ValueError(refusal(path, result, metadata["choices"]))
    if "holds" in metadata and not metadata["holds"](result):
        raise ValueError(f"{path} is {value!r}; {metadata['rule']}.")
    return result


_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
