"""What tools print about compiled kernels, hand-made, read into the right numbers and words."""

from __future__ import annotations

import pytest

from kernels import static_text
from kernels.static_compile import complaint

CUOBJDUMP = """
Resource usage:
 Common:
  GLOBAL:28 CONSTANT[4]:16
 Function recurrence_backward:
  REG:168 STACK:2048 SHARED:1024 LOCAL:0 CONSTANT[0]:608 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function another:
  REG:30 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:608 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
PTXAS = """\
ptxas info    : 28 bytes gmem
ptxas info    : Compiling entry function 'recurrence_backward' for 'sm_90a'
ptxas info    : Function properties for recurrence_backward
    2048 bytes stack frame, 2396 bytes spill stores, 2500 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
ptxas info    : Compiling entry function 'another' for 'sm_90a'
ptxas info    : Function properties for another
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
"""
# Stores 64 + 32 and reloads 64 + 4 + 16 bytes; what follows them is none of that.
OBJDUMP = """
kernel.so:     file format elf64-x86-64


Disassembly of section .text:

0000000000001000 <backward_f32>:
    1000:\tpush   %rbp
    1001:\tsub    $0x1c0,%rsp
    1008:\tvmovaps %zmm3,0x40(%rsp)
    1010:\tvmovups %ymm17,(%rsp)
    1018:\tvmovaps 0x40(%rsp),%zmm3
    1020:\tvfmadd231ss 0x8(%rsp),%xmm1,%xmm2
    1028:\tvfmadd231ps -0x10(%rsp),%xmm1,%xmm2
    1030:\tmov    %rax,0x18(%rsp)
    1038:\tvmovaps %zmm5,0x40(%rsp,%rax,8)
    1040:\tvmovaps 0x40(%rbp),%zmm6
    1048:\tvmovaps %zmm3,0x40(%rdi)
    1050:\tcall   2000 <lanes>
    1058:\tcall   9000 <expf@plt>
    1060:\tjae    3000 <backward_f32.cold>
    1066:\tret

0000000000002000 <lanes>:
    2000:\tpush   %rbp
    2001:\tmov    %rsp,%rbp
    2004:\tadd    $0xffffffffffffff80,%rsp
    2008:\tvmovaps %zmm3,-0x40(%rbp)
    2010:\tret

0000000000003000 <backward_f32.cold>:
    3000:\tvmovaps %xmm9,0x10(%rsp)        # 4000 <table+0x10>
    3008:\tret

0000000000004000 <elsewhere>:
    4000:\tvmovaps %zmm30,0x40(%rsp)
    4008:\tret
"""


def test_registers_and_stack_are_read_from_the_resource_report() -> None:
    assert static_text.resources(CUOBJDUMP, "recurrence_backward") == static_text.Resources(168, 2048)
    assert static_text.resources(CUOBJDUMP, "another") == static_text.Resources(30, 0)


def test_spills_are_read_from_the_assemblers_log() -> None:
    assert static_text.spills(PTXAS, "recurrence_backward") == static_text.Spills(2396, 2500)
    assert static_text.spills(PTXAS.replace("ptxas info", "ptxas-blackwell info"), "another") == static_text.Spills(
        0, 0
    )


def test_spills_of_x86_are_counted_in_a_function_and_what_it_calls() -> None:
    # Registers 1, 2, 3, 5, 6, 9, 17. Five in the function, one in `lanes` (64 bytes), one in its cold part (16 bytes).
    assert static_text.vectors(OBJDUMP, "backward_f32") == static_text.Vectors(
        registers=7,
        stack_bytes=0x1C0,
        spill_instructions=7,
        spill_store_bytes=64 + 32 + 64 + 16,
        spill_load_bytes=64 + 4 + 16,
    )


def test_a_frame_made_by_adding_a_negative_number_is_a_frame() -> None:
    assert static_text.vectors(OBJDUMP, "lanes") == static_text.Vectors(1, 128, 1, 64, 0)


@pytest.mark.parametrize(
    ("instruction", "stored", "loaded"),
    [
        ("vmovss %xmm1,0x8(%rsp)", 4, 0),
        ("vmovsd 0x8(%rsp),%xmm1", 0, 8),
        ("vmovq  %xmm1,0x8(%rsp)", 8, 0),
        ("vmovd  0x8(%rsp),%xmm1", 0, 4),
        ("vbroadcastss 0x8(%rsp),%zmm1", 0, 4),
        ("vbroadcastsd 0x8(%rsp),%zmm1", 0, 8),
        ("vpbroadcastd 0x8(%rsp),%zmm1", 0, 4),
        ("vpbroadcastq 0x8(%rsp),%zmm1", 0, 8),
        ("vmulps 0x8(%rsp){1to16},%zmm1,%zmm2", 0, 4),
        ("vmulpd 0x8(%rsp){1to8},%zmm1,%zmm2", 0, 8),
        ("vextractf32x4 $0x1,%zmm1,0x10(%rsp)", 16, 0),
        ("vextracti128 $0x1,%ymm1,0x10(%rsp)", 16, 0),
        ("vextractf64x4 $0x1,%zmm1,0x20(%rsp)", 32, 0),
        ("vinsertf32x8 $0x1,0x20(%rsp),%zmm1,%zmm2", 0, 32),
        ("vmovdqa64 %zmm1,0x40(%rsp)", 64, 0),
        ("vmovdqu8 %ymm1,0x40(%rsp)", 32, 0),
        ("vmovups %zmm1,0x40(%rsp){%k1}", 64, 0),
        ("vmovlps %xmm1,0x8(%rsp)", 8, 0),
        ("movaps %xmm1,(%rsp)", 16, 0),
        ("vunpcklps 0x10(%rsp),%xmm1,%xmm2", 0, 16),
        ("vcvtsi2ss 0x8(%rsp),%xmm1,%xmm1", 0, 4),
    ],
)
def test_each_instruction_moves_its_own_width(instruction: str, stored: int, loaded: int) -> None:
    found = static_text.vectors(f"0000000000001000 <f>:\n    1000:\t{instruction}\n", "f")
    assert (found.spill_instructions, found.spill_store_bytes, found.spill_load_bytes) == (1, stored, loaded)


@pytest.mark.parametrize("read", [static_text.resources, static_text.spills, static_text.vectors])
@pytest.mark.parametrize("text", ["", "ptxas fatal   : Unknown option", CUOBJDUMP + PTXAS + OBJDUMP])
def test_text_that_does_not_speak_of_the_kernel_is_unreadable(read, text: str) -> None:
    with pytest.raises(static_text.Unreadable, match="no_such_kernel"):
        read(text, "no_such_kernel")


REFUSED = """\
PTXAS error: Internal Triton PTX codegen error
`ptxas` stderr:
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas fatal   : (C7600) Register allocation failed with register count of '96'
ptxas fatal   : Ptx assembly aborted due to errors

Repro command: ptxas -v --gpu-name=sm_90a kernel.ptx
"""
PASS_FAILED = """\
some warning: about nothing
<unknown>:0: error: parent layout must have at least rank >= 2
module attributes {
"""


@pytest.mark.parametrize(
    ("error", "stderr", "says"),
    [
        (
            RuntimeError(REFUSED),
            "",
            "RuntimeError: ptxas fatal   : (C7600) Register allocation failed with register count of '96'",
        ),
        (
            RuntimeError("PassManager::run failed"),
            PASS_FAILED,
            "RuntimeError: <unknown>:0: error: parent layout must have at least rank >= 2",
        ),
        (ValueError("\nno such type\nat line 3"), "", "ValueError: no such type"),
        (AssertionError(), "", "AssertionError: it said nothing"),
    ],
)
def test_a_refusal_is_told_in_the_compilers_words(error: Exception, stderr: str, says: str) -> None:
    assert complaint(error, stderr) == says
