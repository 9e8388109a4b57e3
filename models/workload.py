"""The workload that the harness times: whole training steps of the hybrid model.

Shapes: S microsteps, B sequences, T tokens.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kernels.errors import Unavailable
from models.config import WorkloadConfig
from models.model import Model
from models.precision import Precision
from models.replay import Microstep, ReplayedMicrostep
from models.text import Batches, standard_library


class ReferenceWorkload:
    """Builds once from plain config values, then runs whole steps.

    Parameters and batches depend on the config's shapes and seed only, so two arms that differ in ops, formats or
    checkpointing start alike and read the same text. Raises `ValueError` for a bad config and
    `kernels.errors.Unavailable` where the device cannot run it.
    """

    def __init__(self, **config: Any) -> None:
        self.config = WorkloadConfig.from_dict(config)
        batch, optimizer = self.config.batch, self.config.optimizer
        self.device = self.config.device
        _require(self.config)
        torch.set_num_threads(self.config.threads)
        self._device = torch.device(self.device)
        self._precision = Precision(self.config)
        self.low_precision = self._precision.low_precision
        self.tokens_per_step = batch.sequences * batch.tokens * batch.microsteps

        self._text = standard_library()
        self._batches = Batches(
            self._text.data,
            sequences=batch.sequences,
            tokens=batch.tokens,
            microsteps=batch.microsteps,
            seed=self.config.seed,
        )
        self.model = Model(self.config, self._precision)
        self.model.initialize(self.config.seed)
        self.model.to(self._device)
        self._parameters = list(self.model.parameters())
        self._quantized = self._precision.quantized(self.model.modules())
        self._optimizer = torch.optim.AdamW(
            [
                {"params": [p for p in self._parameters if p.ndim > 1], "weight_decay": optimizer.weight_decay},
                {"params": [p for p in self._parameters if p.ndim == 1], "weight_decay": 0.0},
            ],
            lr=optimizer.learning_rate,
            betas=(optimizer.betas[0], optimizer.betas[1]),
            fused=True,
        )
        self._optimizer.register_step_post_hook(self._forget)
        self._refresh()
        self._microstep = (
            ReplayedMicrostep(self.model, batch, self._device) if self.config.graph else Microstep(self.model, batch)
        )
        self._latest: tuple[Tensor, Tensor] | None = None

    def step(self) -> None:
        """One training step: a fresh batch, `microsteps` forward and backward passes, clipping, AdamW.

        Cached weights are quantized at its start, before any microstep.
        """
        self._refresh()
        inputs_SBT, targets_SBT = self._batches.next()
        if self.device == "cuda":
            inputs_SBT, targets_SBT = (
                x.contiguous().pin_memory().to(self._device, non_blocking=True) for x in (inputs_SBT, targets_SBT)
            )
        self._microstep.clear_gradients()
        losses = [
            self._microstep(inputs_BT, targets_BT)
            for inputs_BT, targets_BT in zip(inputs_SBT, targets_SBT, strict=True)
        ]
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.config.optimizer.clip, foreach=True)
        self._optimizer.step()
        self._latest = torch.stack(losses).sum(), norm

    def restart(self) -> None:
        """Parameters, optimizer state and batches as they were at first, in place: the next step repeats step 1.

        To the bit on a CPU. Gradients of the latest step stay readable until the next.
        """
        first = Model(self.config, self._precision)
        first.initialize(self.config.seed)
        with torch.no_grad():
            for parameter, value in zip(self._parameters, first.parameters(), strict=True):
                parameter.copy_(value)
        for state in self._optimizer.state.values():
            for value in state.values():
                value.zero_()
        self._batches.restart()

    def synchronize(self) -> None:
        """Waits until the device has finished what was given to it. Nothing to wait for on a CPU."""
        if self.device == "cuda":
            torch.cuda.synchronize(self._device)

    def last_step(self) -> dict[str, float]:
        """Mean loss in nats and global gradient norm before clipping, of the latest step. Waits for the device."""
        if self._latest is None:
            raise RuntimeError("no step has run yet: call step() first.")
        loss, norm = self._latest
        return {"loss": loss.item(), "gradient_norm": norm.item()}

    def gradients(self) -> dict[str, Tensor]:
        """Name to gradient of the latest step, after clipping, as AdamW saw it. Valid until the next step."""
        if self._latest is None:
            raise RuntimeError("no step has run yet: call step() first.")
        return {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}

    def parameters(self) -> dict[str, Tensor]:
        """Name to parameter, float32. Valid until `close`."""
        return {name: p.detach() for name, p in self.model.named_parameters()}

    def facts(self) -> dict[str, Any]:
        """What ran, ready for JSON."""
        config = self.config
        return {
            "name": config.name,
            "dataset": {
                "text": "python standard library",
                "sha256": self._text.sha256,
                "bytes": self._text.size_bytes,
                "files": self._text.files,
            },
            "parameters": sum(p.numel() for p in self._parameters),
            "tokens_per_step": self.tokens_per_step,
            "device": self.device,
            "threads": torch.get_num_threads(),
            "low_precision": self.low_precision,
            "formats": dict(self._precision.formats),
            "activation_dtype": str(self._precision.activation_dtype).removeprefix("torch."),
            "ops": dataclasses.asdict(config.ops),
            "quant": dataclasses.asdict(config.quant),
            "compiled": config.compiled,
            "checkpoint": config.checkpoint.policy,
            "recomputed_blocks": config.checkpoint.blocks(config.model.layers),
            "compile": config.compile,
            "graph": config.graph,
        }

    def close(self) -> None:
        """Frees gradients, optimizer state and the captured graph. No step may follow."""
        self._microstep.close()
        self._optimizer.state.clear()
        self._latest = None

    @classmethod
    def exact(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The same step with nothing quantized and every product in float32. Ops and compilation stay."""
        result = copy.deepcopy(dict(config))
        result["precision"] = {**result.get("precision", {}), "gemm": "fp32", "higher": "fp32"}
        return result

    @classmethod
    def reference(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """`exact` with every op its reference, not compiled, not captured: a graph of the sequential recurrence would
        be huge. Checkpointing stays as the arm has it, since without it that recurrence would fit on no device.
        """
        result = cls.exact(config)
        result["ops"] = {
            "prenorm": "reference",
            "recurrence": "reference",
            "recurrence_backward": "fused",
            "recurrence_registers": 0,
            "quantize": "reference",
            "gated": "separate",
        }
        result["compile"] = "none"
        result["graph"] = False
        return result

    @classmethod
    def static(cls, config: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What compilers say about the kernels that `config` selects (`kernels.static`). Needs no device."""
        from kernels import static

        typed = WorkloadConfig.from_dict(config)
        return static.rows_for(dataclasses.asdict(typed.ops), typed.device, dataclasses.asdict(typed.model))

    def _refresh(self) -> None:
        if self._precision.cached is not None:
            self._precision.cached.refresh(self._quantized)

    def _forget(self, *_: Any) -> None:
        if self._precision.cached is not None:
            self._precision.cached.forget(self._quantized)


def _require(config: WorkloadConfig) -> None:
    if config.graph and config.device != "cuda":
        raise Unavailable(
            reason=f"graph is true with device {config.device!r}: there are CUDA graphs on CUDA devices only.",
            remedy="Choose workload=reference_1b, or set workload.graph to false.",
        )
    if config.device == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda
        reason = "no CUDA device answers." if built else f"this torch ({torch.__version__}) is built without CUDA."
        raise Unavailable(
            reason=f"device: cuda was asked for, but {reason}",
            remedy="Choose workload=reference_cpu, or install a CUDA build of torch on a machine with an NVIDIA GPU.",
        )
