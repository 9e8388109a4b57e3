"""What the four scripts train: a small GPT-2 of transformers' on tokens of the standard library, and their flags."""

from __future__ import annotations

import argparse
import re
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

TOKENS, SEQUENCES, VOCABULARY, CLIP, RATE = 128, 4, 1024, 1.0, 1e-3
WORDS = re.compile(r"\w+|\W")
PAGE = 16384  # characters that are read and split for one sequence


def flags() -> argparse.ArgumentParser:
    """The flags that every script takes. A loop goes on until it is ended, or for `--steps`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="eager")
    parser.add_argument("--adamw", choices=("foreach", "fused"), default="foreach")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again in the backward pass")
    parser.add_argument("--workers", type=int, default=0, help="processes that prepare batches")
    parser.add_argument("--steps", type=int, default=1_000_000)
    return parser


class Pages(Dataset[torch.Tensor]):
    """Sequences of TOKENS words of the standard library's modules, split and numbered each time that they are asked
    for: the work of a loader."""

    def __init__(self) -> None:
        files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:60]
        self._text = "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> torch.Tensor:
        start = zlib.crc32(str(index).encode()) % (len(self._text) - PAGE)
        words = WORDS.findall(self._text[start : start + PAGE])
        numbers = [zlib.crc32(word.encode()) % VOCABULARY for word in words]
        return torch.tensor(numbers[:TOKENS])


def collate(pages: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    tokens = torch.stack(pages)
    return {"input_ids": tokens, "labels": tokens}


def model(given: argparse.Namespace) -> Any:
    """Built on the same numbers whatever the flags; without dropout, so that arms can be compared."""
    torch.manual_seed(0)
    size = {"n_layer": 4, "n_head": 4, "n_embd": 64, "n_positions": TOKENS, "vocab_size": VOCABULARY}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(**size, **dropout, bos_token_id=0, eos_token_id=0, use_cache=False)
    config._attn_implementation = given.attention
    built = GPT2LMHeadModel(config)
    if given.checkpointing:
        built.gradient_checkpointing_enable({"use_reentrant": False})
    return built.train()


def optimizer(given: argparse.Namespace, built: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        built.parameters(), lr=RATE, foreach=given.adamw == "foreach", fused=given.adamw == "fused"
    )


def loader(given: argparse.Namespace, **sampled: Any) -> DataLoader[Any]:
    order = sampled or {"shuffle": True, "generator": torch.Generator().manual_seed(1)}
    return DataLoader(
        Pages(),
        batch_size=SEQUENCES,
        collate_fn=collate,
        num_workers=given.workers,
        persistent_workers=given.workers > 0,
        drop_last=True,
        **order,
    )


def forever(batches: DataLoader[Any]) -> Iterator[Any]:
    while True:
        yield from batches


def step(given: argparse.Namespace, net: Any, adamw: torch.optim.Optimizer, batch: dict[str, torch.Tensor]) -> Any:
    """One training step in plain torch; its loss and the norm of its gradients before they are clipped."""
    adamw.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=given.bf16):
        loss = net(**batch).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
    adamw.step()
    return loss.detach(), norm
