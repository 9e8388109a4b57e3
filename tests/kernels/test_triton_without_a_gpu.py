"""Triton kernels on a machine without a GPU: run by Triton's interpreter, and compiled for Hopper."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernels.static import triton_rows
from kernels.static_families import TritonKernel, sizes_of
from tests.kernels.every import INTERPRETED, ROOT, files_that_define

# The tests of every kernel, which the interpreter runs again.
ELSEWHERE = sorted(str(path) for path in Path(__file__).parent.glob("test_every_kernel*.py"))


def test_triton_kernels_agree_with_the_reference_under_the_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("this is the interpreter's own run")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ELSEWHERE, "-k", "triton-cpu"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-2000:]
    assert re.search(r"\d+ passed", told.stdout) and "skipped" not in told.stdout, told.stdout[-2000:]


@pytest.mark.timeout(400)  # two dozen compilations of up to a few seconds each
@pytest.mark.parametrize("name", files_that_define("SPECIALIZATIONS"))
def test_triton_kernels_compile_for_hopper_and_blackwell_without_a_device(name: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("interpreted kernels are not compiled")
    entries = {entry.name: entry for entry in importlib.import_module(name).SPECIALIZATIONS}
    assert entries
    listed = {name: TritonKernel(name, "", partial(_as_listed, entry)) for name, entry in entries.items()}
    capped = [name for name, entry in entries.items() if entry.options]
    rows = triton_rows([listed[name] for name in entries if name not in capped])
    rows += triton_rows([listed[name] for name in capped], architectures=[90])
    for row in rows:
        print({name: value for name, value in row.items() if value not in ("", None)})
        if row["status"] == "unavailable":
            # Some releases of Triton cannot compile some kernels for Blackwell, and the assembler refuses a cap that
            # is too low; the row then has their words.
            assert row["target"] == "sm_100" or entries[row["kernel"]].options, row
            assert len(row["reason"]) > len("RuntimeError: "), row
            continue
        assert 0 < row["registers"] <= entries[row["kernel"]].options.get("maxnreg", 255), row
        # For Blackwell the widest prenorm, with 64 registers for each of 1,024 threads, spills a few bytes.
        if row["target"] == "sm_90" and not entries[row["kernel"]].name.startswith("recurrence_"):
            assert row["stack_bytes"] == row["spill_store_bytes"] == row["spill_load_bytes"] == 0, row
    if name.endswith("recurrence_triton"):
        _the_published_story({row["kernel"]: row for row in rows if row["target"] == "sm_90"})


def _the_published_story(rows: dict[str, Any]) -> None:
    """The recurrent backward fills its registers and spills; a cap makes it spill more, less live state less."""
    shape = "bf16_64x128_chunk64"
    fused = rows[f"recurrence_backward_fused_{shape}"]
    assert fused["registers"] == 255 and fused["spill_store_bytes"] > 0
    capped = [rows[f"recurrence_backward_fused_{shape}_cap{cap}"] for cap in (168, 128)]
    spilled = [row["spill_store_bytes"] for row in (fused, *capped)]
    assert spilled == sorted(spilled) and len(set(spilled)) == 3, spilled
    smaller = next(row for name, row in rows.items() if name.startswith("recurrence_backward_live_state_"))
    assert smaller["spill_store_bytes"] < fused["spill_store_bytes"]


def _as_listed(entry: Any) -> tuple[Any, tuple[str, ...]]:
    """At the presets' sizes, all of them multiples of 16."""
    return entry, sizes_of(entry)
