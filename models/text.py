"""Bytes of the Python standard library as training text, and batches drawn from them.

Shapes: S microsteps, B sequences, T tokens. A token is a byte.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

TEXT_BYTES = 4 * 1024 * 1024
_LEFT_OUT = {"site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True)
class Text:
    """`data` holds uint8 bytes. `sha256` is of exactly these bytes, so runs on other text can be told apart."""

    data: Tensor
    sha256: str
    files: int

    @property
    def size_bytes(self) -> int:
        return self.data.numel()


def standard_library(cap_bytes: int = TEXT_BYTES) -> Text:
    """The .py files of this interpreter's standard library, in the order of `_python_files`, cut at the cap.

    Installed packages are left out. The text is the same for the same Python release; `sha256` says whether it is.
    """
    text = bytearray()
    files = 0
    for path in _python_files(Path(sysconfig.get_paths()["stdlib"])):
        text += path.read_bytes()
        files += 1
        if len(text) >= cap_bytes:
            break
    del text[cap_bytes:]
    return Text(torch.frombuffer(text, dtype=torch.uint8), hashlib.sha256(text).hexdigest(), files)


def _python_files(folder: Path) -> Iterator[Path]:
    """Depth first, names of files and folders sorted together. Lazy: the whole library takes a second to list."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name not in _LEFT_OUT:
            yield from _python_files(Path(entry.path))
        elif entry.is_file() and entry.name.endswith(".py"):
            yield Path(entry.path)


class Batches:
    """An endless, seeded stream of batches: the same seed gives the same batches in the same order.

    A whole step is drawn at once, so two microsteps of two sequences read what one microstep of four would.
    """

    def __init__(self, text: Tensor, *, sequences: int, tokens: int, microsteps: int, seed: int) -> None:
        if text.numel() <= tokens:
            raise ValueError(f"batch.tokens is {tokens}; the text has {text.numel()} bytes and needs more than that.")
        self._windows = text.unfold(0, tokens + 1, 1)
        self._shape = (microsteps, sequences, tokens + 1)
        self._seed = seed
        self._generator = torch.Generator()
        self.restart()

    def restart(self) -> None:
        """Back to the first batch."""
        self._generator.manual_seed(self._seed)

    def next(self) -> tuple[Tensor, Tensor]:
        """The next step's inputs_SBT and targets_SBT, int64 on the CPU; targets are the inputs one byte later."""
        microsteps, sequences, _ = self._shape
        starts = torch.randint(self._windows.shape[0], (microsteps * sequences,), generator=self._generator)
        bytes_SBT = self._windows[starts].long().view(self._shape)
        return bytes_SBT[..., :-1], bytes_SBT[..., 1:]
