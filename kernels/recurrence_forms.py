"""The gated linear recurrence in every form, with its cases. Equations and shapes are in `kernels.recurrence`.

All compute o_BTHV of q_BTHK, k_BTHK, v_BTHV and log_decay_BTH. `chunk` is how many tokens are taken at a time; the
numbers do not depend on it but for rounding. The compiled forms have three backward passes, which differ in what they
keep at hand at once and not in their result:

    fused        one sweep; a tile holds the state, its gradient, and the next chunk's gradient together
    phase_split  a sweep for dq with only the state, then one for dk and dv with only its gradient; what both need
                 (q . dq by token, and on the CPU the masked scores of v and do) is written in between
    live_state   one sweep over tiles of half the size

`registers` is a cap on what the backward kernel may use: vector registers on the CPU, registers a thread on CUDA.

Bytes moved in float32, per token and head, with the states stored once a chunk of C (4 bytes an element):

    |          | compiled                                            | at K=16, V=32, C=32 |
    | forward  | q, k, v, log_decay in; o out; states out:  8K + 8V + 4 + 4KV/C               | 452 |
    | backward | q, k, v, do, log_decay, states in; gradients out: 16K + 12V + 8 + 4KV/C      | 712 |

The sequential form moves at least 12 KV bytes a token forward (6,144 here), the chunked one in torch about 12 C for
scores and decays, and each of its intermediate tensors twice more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.cases import Case, Layout, Tolerance
from kernels.errors import without_triton
from kernels.recurrence import reference as sequential
from kernels.recurrence_chunked import chunked as in_chunks
from kernels.recurrence_cpu import recurrence_cpu
from kernels.recurrence_ops import check_backward_name


def reference(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_decay_BTH: Tensor,
    chunk: int = 0,
    backward: str = "fused",
    registers: int = 0,
) -> Tensor:
    """o_BTHV token by token, `kernels.recurrence.reference`. Raises ValueError for a `backward` or a cap."""
    _only_autograd("reference", backward, registers)
    return sequential(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, chunk)


def chunked(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_decay_BTH: Tensor,
    chunk: int,
    backward: str = "fused",
    registers: int = 0,
) -> Tensor:
    """o_BTHV in plain torch, `kernels.recurrence_chunked.chunked`. Raises ValueError as `reference` does."""
    _only_autograd("chunked", backward, registers)
    return in_chunks(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, chunk)


def cpu(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_decay_BTH: Tensor,
    chunk: int,
    backward: str = "fused",
    registers: int = 0,
) -> Tensor:
    """o_BTHV by the compiled C++ kernel; float32 on the CPU, one thread, built at the first call.

    Raises Unavailable without a C++ compiler, TypeError for another dtype, ValueError for another device or shape, and
    for a `backward` or a cap that there is none of.
    """
    return recurrence_cpu(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, chunk, backward, registers)


def triton(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_decay_BTH: Tensor,
    chunk: int,
    backward: str = "fused",
    registers: int = 0,
) -> Tensor:
    """o_BTHV by the Triton kernels; float32 or bfloat16 on CUDA, log_decay in float32, K, V and chunk up to 128.

    Raises Unavailable without Triton or without a CUDA device, TypeError and ValueError as `cpu` does.
    """
    try:
        from kernels import recurrence_triton
    except ModuleNotFoundError as error:
        raise without_triton(error, "set ops.recurrence to cpu, chunked or reference") from error
    if not q_BTHK.is_cuda:
        recurrence_triton.require_device()
    return recurrence_triton.recurrence_triton(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, chunk, backward, registers)


def _only_autograd(name: str, backward: str, registers: int) -> None:
    check_backward_name(backward)
    if backward != "fused" or registers:
        raise ValueError(
            f"The {name} recurrence is differentiated by autograd: it has no backward={backward!r} with "
            f"registers={registers}. Leave them at 'fused' and 0, or set ops.recurrence to cpu or triton."
        )


Recurrence = Callable[..., Tensor]
IMPLEMENTATIONS: dict[str, Recurrence] = {
    "reference": reference,
    "chunked": chunked,
    "cpu": cpu,
    "triton": triton,
}
DEVICES: dict[str, tuple[str, ...]] = {
    "reference": ("cpu", "cuda"),
    "chunked": ("cpu", "cuda"),
    "cpu": ("cpu",),
    "triton": ("cuda",),
}


@dataclass(frozen=True)
class DecayCase(Case):
    """A case whose log_decay is -|normal| times `decay`: near 0 nothing is forgotten, at 30 nothing is kept."""

    decay: float = 0.1

    def inputs(self, device: str) -> dict[str, Tensor]:
        tensors = super().inputs(device)
        tensors["log_decay_BTH"] = tensors["log_decay_BTH"].abs().mul(-self.decay / self.scale)
        return tensors


_FLOAT32 = Tolerance(
    relative=1e-5,
    absolute=5e-5,
    reason="An output adds up to K terms for each token it remembers, with values up to a few tens; each term has a "
    "float32 rounding of 6e-8, and those of the sum and of the product of decays, of size up to 40 roundings.",
)
_FLOAT32_GRADIENT = Tolerance(
    relative=2e-5,
    absolute=4e-4,
    reason="The gradient of log_decay is a difference of sums over K or V and over the chunk, of size up to a few "
    "hundred, so roundings of 6e-8 of those stay where they cancel; those of q, k and v add as in the output.",
)
_BFLOAT16 = Tolerance(
    relative=2.0**-6,
    absolute=2.0**-2,
    reason="The products take operands of 8 bits, the scores and the state among them: each term errs by up to 2^-8, "
    "and sums of up to a few hundred terms, of size up to some tens, keep the root of that many errors.",
)
_BFLOAT16_GRADIENT = Tolerance(
    relative=2.0**-5,
    absolute=2.0**1,
    reason="As the output, and log_decay's gradient adds such errors of q . dq and k . dk over a chunk.",
)


def _case(
    name: str,
    batch: int,
    tokens: int,
    heads: int,
    key_width: int,
    value_width: int,
    chunk: int,
    decay: float = 0.1,
    layout: Layout = "contiguous",
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Case:
    narrow = dtype is not torch.float32
    shape = (batch, tokens, heads)
    return DecayCase(
        name=name,
        shapes={
            "q_BTHK": (*shape, key_width),
            "k_BTHK": (*shape, key_width),
            "v_BTHV": (*shape, value_width),
            "log_decay_BTH": shape,
        },
        options={"chunk": chunk},
        implementations=("chunked", "triton") if narrow else ("reference", "chunked", "cpu", "triton"),
        outputs=_BFLOAT16 if narrow else _FLOAT32,
        gradients=_BFLOAT16_GRADIENT if narrow else _FLOAT32_GRADIENT,
        dtype=dtype,
        dtypes={"log_decay_BTH": torch.float32},
        layout=layout,
        scale=scale,
        decay=decay,
    )


CASES: tuple[Case, ...] = (
    _case("even", 1, 16, 2, 16, 32, 8),
    _case("odd", 2, 37, 3, 5, 7, 8),
    _case("wide", 1, 40, 1, 33, 65, 20),
    _case("chunk_of_one", 1, 5, 2, 4, 8, 1),
    _case("chunk_beyond_the_end", 2, 9, 2, 4, 6, 100),
    _case("chunk_of_all", 1, 16, 1, 16, 16, 16),
    _case("one_token", 3, 1, 2, 3, 2, 16),
    _case("one_of_each", 1, 1, 1, 1, 1, 1),
    _case("no_tokens", 2, 0, 2, 4, 8, 16),
    _case("no_sequences", 0, 8, 2, 4, 8, 16),
    _case("many_chunks", 1, 150, 1, 4, 4, 4),
    _case("nothing_forgotten", 1, 24, 2, 8, 16, 8, decay=0.0),
    _case("almost_nothing_forgotten", 1, 40, 2, 8, 16, 8, decay=1e-5),
    _case("almost_nothing_kept", 1, 40, 2, 8, 16, 8, decay=30.0),
    _case("strided", 2, 11, 2, 6, 10, 4, layout="strided"),
    _case("transposed", 2, 11, 2, 6, 10, 4, layout="transposed"),
    _case("expanded", 2, 11, 2, 6, 10, 4, layout="expanded"),
    _case("bfloat16", 2, 37, 2, 17, 40, 16, dtype=torch.bfloat16),
)
