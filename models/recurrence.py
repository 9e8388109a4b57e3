"""The gated linear recurrence, sequential and in chunks.

    S_t = a_t S_{t-1} + k_t v_t^T        S is a K x V matrix per head, S_0 = 0, a_t in (0, 1) a scalar per head
    o_t = q_t S_t

Shapes: B sequences, T tokens, H heads, K key width, V value width, N chunks, C tokens of a chunk. The decay is
given as log a_t in float32. The chunked form is that of Mamba-2 (Dao and Gu, 2024, arXiv:2405.21060, section 6).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Recurrence = Callable[[Tensor, Tensor, Tensor, Tensor, int], Tensor]


def reference(q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_decay_BTH: Tensor, chunk: int = 0) -> Tensor:
    """The equations as written, one token after another. Returns o_BTHV; `chunk` is not used."""
    state_BHKV = q_BTHK.new_zeros((*q_BTHK.shape[:1], *q_BTHK.shape[2:], v_BTHV.shape[-1]))
    decay_BTH = log_decay_BTH.exp().to(q_BTHK.dtype)
    outputs = []
    for t in range(q_BTHK.shape[1]):
        written_BHKV = k_BTHK[:, t, :, :, None] * v_BTHV[:, t, :, None, :]
        state_BHKV = decay_BTH[:, t, :, None, None] * state_BHKV + written_BHKV
        outputs.append((q_BTHK[:, t, :, None, :] @ state_BHKV).squeeze(-2))
    return torch.stack(outputs, dim=1)


def chunked(q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_decay_BTH: Tensor, chunk: int) -> Tensor:
    """The same numbers by matrix products: within a chunk by masked scores, between chunks by carried states.

    Returns o_BTHV in the dtype of q. Any T works; the last chunk is filled with tokens that write nothing. Decays are
    summed in float32; every exponent is at most 0, so nothing overflows. G = B * H * N chunks of all heads.
    """
    dtype, (batch, tokens, heads, _) = q_BTHK.dtype, q_BTHK.shape
    q_GCK, k_GCK, v_GCV = (_in_chunks(x, chunk) for x in (q_BTHK, k_BTHK, v_BTHV))
    sums_GC = _in_chunks(log_decay_BTH.float()[..., None], chunk).squeeze(-1).cumsum(-1)

    # Within a chunk: token i reads token j <= i through the decays of j+1 .. i.
    scores_GCC = torch.bmm(q_GCK, k_GCK.mT) * _decay_between(sums_GC, sums_GC, 0).to(dtype)
    o_GCV = torch.bmm(scores_GCC, v_GCV)

    if tokens > chunk:
        # What each chunk adds to the state, seen from the chunk's end.
        total_G1 = sums_GC[:, -1:]
        to_end_GC = (total_G1 - sums_GC).exp().to(dtype)
        added_GKV = torch.bmm((k_GCK * to_end_GC[..., None]).mT, v_GCV)
        # The state on entry to chunk n: what chunks m < n added, through the decays of m+1 .. n-1.
        total_XN = total_G1.view(batch * heads, -1)
        through_XN = total_XN.cumsum(-1)
        carry_XNN = _decay_between(through_XN - total_XN, through_XN, -1).to(dtype)
        entry_GKV = torch.bmm(carry_XNN, added_GKV.view(*total_XN.shape, -1)).view_as(added_GKV)
        o_GCV = torch.baddbmm(o_GCV, q_GCK * sums_GC.exp().to(dtype)[..., None], entry_GKV)

    o_BHTV = o_GCV.view(batch, heads, -1, o_GCV.shape[-1])
    return o_BHTV[:, :, :tokens].transpose(1, 2)


def _in_chunks(x_BTHX: Tensor, chunk: int) -> Tensor:
    """[B, T, H, X] to [B * H * N, C, X], zeros after the end."""
    tokens, width = x_BTHX.shape[1], x_BTHX.shape[-1]
    if tokens % chunk:
        x_BTHX = F.pad(x_BTHX, (0, 0, 0, 0, 0, -tokens % chunk))
    return x_BTHX.transpose(1, 2).reshape(-1, chunk, width)


def _decay_between(upto: Tensor, since: Tensor, diagonal: int) -> Tensor:
    """exp(upto_i - since_j) where j <= i + diagonal, else 0. The clamp keeps the part cut off from overflowing."""
    return (upto[..., :, None] - since[..., None, :]).clamp(max=0).exp().tril(diagonal)


IMPLEMENTATIONS: dict[str, Recurrence] = {"reference": reference, "chunked": chunked}
