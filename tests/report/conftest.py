"""Ledgers of these tests live in temporary folders and are read at once: no disk need keep them. `tests/ledger` has the
tests of what a disk keeps."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield
