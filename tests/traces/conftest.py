"""The profiler files of other makers that the tests read where they are there; they are never copied in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of real traces with their truths and provenance."""
    folder = Path(__file__).parents[3] / "shared" / "data" / "traces"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder
