from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path

import pytest
import torch

from models.text import Batches, standard_library

BYTES = torch.arange(200, dtype=torch.uint8)


def test_text_is_the_standard_library_in_sorted_order_cut_at_the_cap() -> None:
    text = standard_library(cap_bytes=100_000)
    raw = text.data.numpy().tobytes()
    assert len(raw) == text.size_bytes == 100_000
    assert text.sha256 == hashlib.sha256(raw).hexdigest()
    root = Path(sysconfig.get_paths()["stdlib"])
    assert raw.startswith((root / "__future__.py").read_bytes())


def test_text_is_the_same_every_time() -> None:
    assert standard_library(50_000).sha256 == standard_library(50_000).sha256


def test_targets_are_the_inputs_one_byte_later() -> None:
    inputs, targets = Batches(BYTES, sequences=3, tokens=16, microsteps=2, seed=5).next()
    assert inputs.shape == targets.shape == (2, 3, 16)
    assert inputs.dtype == torch.int64
    assert torch.equal(targets, inputs + 1)  # the text counts up


def test_every_step_draws_a_fresh_batch_and_a_seed_repeats_them() -> None:
    first, second = (Batches(BYTES, sequences=2, tokens=16, microsteps=1, seed=5) for _ in range(2))
    drawn = [first.next()[0] for _ in range(3)]
    assert all(torch.equal(batch, second.next()[0]) for batch in drawn)
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], Batches(BYTES, sequences=2, tokens=16, microsteps=1, seed=6).next()[0])


def test_microsteps_split_the_same_batch() -> None:
    joined = Batches(BYTES, sequences=4, tokens=8, microsteps=1, seed=1).next()[0]
    split = Batches(BYTES, sequences=2, tokens=8, microsteps=2, seed=1).next()[0]
    assert torch.equal(joined.flatten(0, 1), split.flatten(0, 1))


def test_text_shorter_than_a_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch\.tokens is 200; the text has 200 bytes"):
        Batches(BYTES, sequences=1, tokens=200, microsteps=1, seed=0)
