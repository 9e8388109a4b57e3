"""Static evidence: real objects of known instructions, the kernels that a config selects, and tools that are broken."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from kernels import build, recurrence_cpu, static
from kernels.errors import Unavailable
from kernels.static_families import CpuKernel, TritonKernel, selected
from tests.kernels.every import INTERPRETED

SHAPES = {"width": 1536, "heads": 12, "key_width": 64, "value_width": 128, "chunk": 64, "ff_width": 5632}


def test_a_cap_counts_in_the_family_that_runs_and_is_the_same_share_in_the_other() -> None:
    # Of 32 vector registers (16 without AVX-512) and of the 256 that a thread's registers are counted in.
    vectors = vector_registers_or_skip()
    on_cpu = {"recurrence": "cpu", "recurrence_registers": 12}
    share = 12 * 256 // vectors
    assert backward_variants(on_cpu) == ["fused fp32, cap 12", f"fused bf16, cap {share} (same share as 12)"]
    on_cuda = {"recurrence": "triton", "recurrence_registers": 128}
    assert backward_variants(on_cuda) == [f"fused fp32, cap {vectors // 2} (same share as 128)", "fused bf16, cap 128"]
    assert backward_variants({"recurrence": "chunked"}) == ["fused fp32", "fused bf16"]


def test_a_cap_on_the_recurrent_backward_makes_it_spill_more() -> None:
    vector_registers_or_skip()
    rows = [cpu_backward_row(cap) for cap in (0, 12, 8)]
    if any(row["status"] != "ok" for row in rows):
        pytest.skip(rows[0]["reason"])
    assert [row["registers"] for row in rows[1:]] == [12, 8]
    spilled = [row["spill_store_bytes"] for row in rows]
    assert spilled == sorted(spilled) and len(set(spilled)) == 3, spilled


def test_a_cap_that_the_compiler_cannot_hold_is_unavailable() -> None:
    vector_registers_or_skip()
    row = cpu_backward_row(2)
    assert row["status"] == "unavailable"
    assert "2" in row["reason"]


def vector_registers_or_skip() -> int:
    try:
        return recurrence_cpu.vector_registers()
    except Unavailable as error:
        pytest.skip(error.reason)


def cpu_backward_row(cap: int) -> dict[str, Any]:
    wanted = selected({"recurrence": "cpu", "recurrence_registers": cap}, "cpu", SHAPES)
    kernel = next(one for one in wanted if isinstance(one, CpuKernel) and one.name == "recurrence_backward")
    return static.cpu_row(kernel)


def backward_variants(ops: dict[str, Any]) -> list[str]:
    return [kernel.variant for kernel in selected(ops, "cpu", SHAPES) if kernel.name == "recurrence_backward"]


ASSEMBLY = """\
    .text
    .globl spilling
    .type spilling, @function
spilling:
    sub $0x88, %rsp
    vmovups %ymm4, 0x20(%rsp)
    vmovups %ymm5, 0x40(%rsp)
    vaddps  0x20(%rsp), %ymm5, %ymm6
    vmovups %ymm6, (%rdi)
    add $0x88, %rsp
    ret
    .size spilling, .-spilling
"""


@pytest.fixture
def assembled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shared object of exactly these instructions, read by the real objdump."""
    if os.uname().machine != "x86_64":
        pytest.skip("the instructions are those of x86-64")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "spilling.s"
    source.write_text(ASSEMBLY)
    try:
        return build.build(source, ("-shared",))
    except Unavailable as error:
        pytest.skip(error.reason)


def test_a_real_object_is_read_as_it_was_written(assembled: Path) -> None:
    try:
        found = static.cpu_resources(assembled, "spilling")
    except Unavailable as error:
        pytest.skip(error.reason)
    assert found == {
        "registers": 3,
        "stack_bytes": 0x88,
        "spill_instructions": 3,
        "spill_store_bytes": 64,
        "spill_load_bytes": 32,
    }


def test_a_symbol_that_the_object_does_not_have_is_unavailable(assembled: Path) -> None:
    row = static.cpu_row(CpuKernel("kernel", "fp32", "no_such_symbol", lambda: assembled))
    assert row["status"] == "unavailable"
    assert "no_such_symbol" in row["reason"]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "no objdump on the PATH"),
        ("#!/bin/sh\necho cannot >&2; exit 3\n", "exit code 3: cannot"),
        ("#!/bin/sh\necho nonsense\n", "holds other code"),
        ("not a program", "does not run"),
    ],
)
def test_a_missing_or_broken_objdump_is_unavailable(
    script: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is not None:
        tool = tmp_path / "objdump"
        tool.write_text(script)
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    row = static.cpu_row(CpuKernel("kernel", "fp32", "symbol", lambda: tmp_path / "object.so"))
    assert (row["status"], row["registers"]) == ("unavailable", None)
    assert says in row["reason"]
    assert "binutils" in row["remedy"] or "x86-64" in row["remedy"]


def test_without_triton_its_kernels_are_unavailable_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    rows = static.rows_for({"prenorm": "triton", "recurrence": "reference"}, "cuda", SHAPES)
    prenorm = [row for row in rows if row["kernel"].startswith("prenorm")]
    assert [(row["kernel"], row["target"]) for row in prenorm] == [
        ("prenorm_forward", "sm_90"),
        ("prenorm_forward", "sm_100"),
        ("prenorm_backward", "sm_90"),
        ("prenorm_backward", "sm_100"),
    ]
    assert {row["reason"] for row in prenorm} == {"Triton is not installed."}
    assert {row["remedy"] for row in prenorm} == {"pip install 'campaign[triton]'"}


def test_every_row_has_every_field_and_the_device_comes_first() -> None:
    rows = static.rows_for({"recurrence": "cpu", "prenorm": "cpu"}, "cpu", SHAPES)
    for row in rows:
        assert tuple(row) == static.FIELDS
        assert (row["status"] == "ok") == (row["registers"] is not None)
    assert [(row["kernel"], row["target"]) for row in rows] == [
        ("recurrence_forward", "cpu"),
        ("recurrence_backward", "cpu"),
        ("prenorm_forward", "cpu"),
        ("prenorm_backward", "cpu"),
        ("recurrence_backward", "sm_90"),
        ("recurrence_backward", "sm_100"),
    ]


def _entry(module: str) -> types.SimpleNamespace:
    """What stands for a specialization of a kernel in `module`, which the compiling process imports."""
    kernel = types.SimpleNamespace(__module__=module, __name__="kernel")
    return types.SimpleNamespace(kernel=kernel, signature={"x": "*fp32"}, constants={}, warps=4, options={})


def test_a_compiler_that_aborts_costs_one_row_and_not_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("interpreted kernels are not compiled")
    (tmp_path / "aborting.py").write_text(
        "import os, sys\nprint('LLVM ERROR: no', file=sys.stderr, flush=True)\nos.abort()\n"
    )
    (tmp_path / "refusing.py").write_text("raise RuntimeError('PassManager::run failed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = prenorm_entry()
    sound = static.triton_resources(entry[0], 90, entry[1])
    rows = static.triton_rows(
        [
            TritonKernel("aborting", "", lambda: (_entry("aborting"), ())),
            TritonKernel("refusing", "", lambda: (_entry("refusing"), ())),
            TritonKernel("prenorm_forward", "", lambda: entry),
            TritonKernel("the same again", "", lambda: entry),
        ],
        architectures=[90],
    )
    aborted, refused, good, again = rows
    assert aborted["reason"] == "the compiling process was ended by SIGABRT: LLVM ERROR: no"
    assert refused["reason"] == "RuntimeError: PassManager::run failed"
    assert (good["status"], good["registers"]) == ("ok", sound["registers"])
    assert again == {**good, "kernel": "the same again"}


def prenorm_entry() -> tuple[Any, tuple[str, ...]]:
    wanted = selected({"prenorm": "triton", "recurrence": "reference"}, "cuda", SHAPES)
    kernel = next(kernel for kernel in wanted if kernel.name == "prenorm_forward")
    assert isinstance(kernel, TritonKernel)
    return kernel.load()
