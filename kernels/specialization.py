"""One way a Triton kernel is compiled, enough to compile it where there is no device.

Importing this file does not need Triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Specialization:
    """A kernel with its argument types, constants and launch options.

    `signature` gives each argument's type by name ("*bf16", "i32", "constexpr"), `constants` the values of those that
    are "constexpr", and `options` what the launch passes besides the warps, {"maxnreg": 128} for a cap of 128
    registers a thread. `divisible` names the integer arguments that are multiples of 16 at such a launch, which decides
    how wide a load is. `spills_expected` says that this one is here to show spills; all others must have none.
    """

    name: str
    kernel: Any
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    warps: int
    options: Mapping[str, Any] = field(default_factory=dict)
    divisible: tuple[str, ...] = ()
    spills_expected: bool = False
