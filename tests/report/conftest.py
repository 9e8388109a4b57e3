"""Ledgers of these tests live in temporary folders and are read at once: no disk need keep them. `tests/ledger` has the
tests of what a disk keeps."""

from __future__ import annotations

import os

import pytest

from tests.report import figured, written


@pytest.fixture(scope="module", autouse=True)
def quick_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture
def ledger(tmp_path):
    with written.opened(tmp_path) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The figures of a campaign with everything in it, by their names."""
    with written.opened(tmp_path_factory.mktemp("whole")) as ledger:
        figured.whole(ledger)
        yield figured.of(ledger)
