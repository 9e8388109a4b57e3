"""Reads what NVIDIA's and GNU's tools print about compiled kernels. Pure text in, numbers out.

Three texts: `cuobjdump --dump-resource-usage` (registers, stack), the log of `ptxas -v` (spills), and `objdump -d` of
an x86-64 object in AT&T syntax (vector registers, spills, stack frame).

In x86 code a spill is an instruction that moves a vector register to or from a fixed place on the stack, or computes
with a vector register and such a place. Only addresses without an index register count: those with one are arrays.
What a function gets on the stack as arguments, and a local array that the compiler unrolled, look the same, so a
kernel without spills may show a few; the count under a cap is to be read against the count without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_RESOURCES = re.compile(r"^ Function (?P<name>\S+):\s*\n\s*REG:(?P<registers>\d+) STACK:(?P<stack>\d+)", re.MULTILINE)
_SPILLS = re.compile(
    r"Function properties for (?P<name>\S+)\s*\n\s*(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:$")
_INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\t(?P<text>\S.*)$")
_JUMP = re.compile(r"^(?:callq?|jmpq?|j[a-z]+)\s+[0-9a-f]+ <(?P<name>[^>+]+)")
_VECTOR = re.compile(r"%(?P<width>[xyz])mm(?P<number>\d+)")
_GROWS = re.compile(r"^(?P<verb>sub|add)q?\s+\$(?P<amount>-?0x[0-9a-f]+),%rsp$")
_PART = re.compile(r"[fi](?P<element>32|64)x(?P<count>\d)|[fi](?P<whole>128)")
_WIDTHS = {"x": 16, "y": 32, "z": 64}


class Unreadable(ValueError):
    """A tool printed something that holds none of what was looked for."""


@dataclass(frozen=True)
class Resources:
    """What a kernel of a cubin needs: registers a thread, bytes of stack (local memory) a thread."""

    registers: int
    stack_bytes: int


@dataclass(frozen=True)
class Spills:
    """What the assembler spilled, in bytes a thread: stores and loads to local memory, counted in the code once each,
    however often they run."""

    store_bytes: int
    load_bytes: int


@dataclass(frozen=True)
class Vectors:
    """An x86-64 function and what it calls in the same object: distinct vector registers, the largest stack frame in
    bytes, instructions that spill or reload one, and the bytes that those move, each counted once."""

    registers: int
    stack_bytes: int
    spill_instructions: int
    spill_store_bytes: int
    spill_load_bytes: int


def resources(report: str, kernel: str) -> Resources:
    """From `cuobjdump --dump-resource-usage`. Raises Unreadable if the report does not have the kernel."""
    for found in _RESOURCES.finditer(report):
        if found["name"] == kernel:
            return Resources(int(found["registers"]), int(found["stack"]))
    raise Unreadable(f"cuobjdump reports no resource usage of {kernel}: {_first_line(report)}")


def spills(log: str, kernel: str) -> Spills:
    """From the log of `ptxas -v`. Raises Unreadable if the log does not have the kernel."""
    for found in _SPILLS.finditer(log):
        if found["name"] == kernel:
            return Spills(int(found["stores"]), int(found["loads"]))
    raise Unreadable(f"the log of ptxas has no function properties of {kernel}: {_first_line(log)}")


def vectors(disassembly: str, symbol: str) -> Vectors:
    """From `objdump -d --no-show-raw-insn`. Raises Unreadable if the disassembly does not have the symbol."""
    functions = _functions(disassembly)
    if symbol not in functions:
        raise Unreadable(f"objdump shows no function {symbol}: {_first_line(disassembly)}")
    numbers: set[int] = set()
    frames = [0]
    stores: list[int] = []
    loads: list[int] = []
    for name in _reached(functions, symbol):
        code = functions[name]
        frames.append(_frame(code))
        # Without a frame pointer, rbp is a register like any other and may hold the address of a tensor.
        bases = "rsp|rbp" if any(re.match(r"movq?\s+%rsp,%rbp$", text) for text in code) else "rsp"
        stack = re.compile(rf"^-?(?:0x[0-9a-f]+)?\(%(?:{bases})\)")
        for text in code:
            numbers |= {int(found["number"]) for found in _VECTOR.finditer(text)}
            mnemonic, _, rest = text.partition(" ")
            operands = _operands(rest)
            if not _VECTOR.search(rest) or not any(stack.match(operand) for operand in operands):
                continue
            (stores if stack.match(operands[-1]) else loads).append(_moved_bytes(mnemonic, operands))
    return Vectors(len(numbers), max(frames), len(stores) + len(loads), sum(stores), sum(loads))


def _functions(disassembly: str) -> dict[str, list[str]]:
    """Instructions by function, without addresses and comments."""
    functions: dict[str, list[str]] = {}
    code: list[str] = []
    for line in disassembly.splitlines():
        if header := _FUNCTION.match(line):
            code = functions.setdefault(header["name"], [])
        elif found := _INSTRUCTION.match(line):
            code.append(found["text"].split("#", 1)[0].strip())
    return functions


def _reached(functions: Mapping[str, Sequence[str]], symbol: str) -> list[str]:
    """The symbol and every function of the object that it calls or jumps to, directly or not."""
    found, waiting = [], [symbol]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.append(name)
        targets = (_JUMP.match(text) for text in functions[name])
        # A call through the procedure linkage table leaves the object.
        waiting += [target["name"] for target in targets if target and target["name"] in functions]
    return found


def _frame(code: Sequence[str]) -> int:
    """The largest piece that the function takes off the stack pointer at once, in bytes."""
    largest = 0
    for text in code:
        if found := _GROWS.match(text):
            amount = int(found["amount"], 16)
            # `sub $-128` is written as `add` of the complement, because it is shorter.
            amount = amount - (1 << 64) if amount >= 1 << 63 else amount
            largest = max(largest, amount if found["verb"] == "sub" else -amount)
    return largest


def _operands(text: str) -> list[str]:
    """Operands, split at the commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text.strip())] if text.strip() else [""]


def _moved_bytes(mnemonic: str, operands: Sequence[str]) -> int:
    """How many bytes an instruction with a vector register moves to or from the stack."""
    if part := _PART.search(mnemonic):
        return 16 if part["whole"] else int(part["element"]) // 8 * int(part["count"])
    if "{1to" in "".join(operands) or "broadcast" in mnemonic:
        return 8 if mnemonic.endswith(("pd", "sd", "q")) else 4
    if mnemonic.endswith(("movd", "ss")):
        return 4
    if mnemonic.endswith(("movq", "sd", "lps", "hps", "lpd", "hpd")) and "unp" not in mnemonic:
        return 8
    return max(_WIDTHS[found["width"]] for operand in operands for found in _VECTOR.finditer(operand))


def _first_line(text: str) -> str:
    """What a tool said first, for a message."""
    lines = text.strip().splitlines()
    return f"it says {lines[0].strip()[:80]!r}" if lines else "it says nothing"
