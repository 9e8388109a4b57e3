"""Ledgers of the report's tests."""

from __future__ import annotations

import pytest

from tests.report import figured, written


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
