"""The gated linear recurrence by matrix products, in plain torch with autograd; equations in `kernels.recurrence`.

Within a chunk by masked scores, between chunks by carried states, as in Mamba-2 (Dao and Gu, 2024, arXiv:2405.21060,
section 6). The carry from chunk to chunk is a recurrence of the same kind, so it is cut into groups in the same way
until one group is left: the cost is linear in the number of tokens.

Shapes as in `kernels.recurrence`; N chunks of C tokens, X = B * H sequences, G = X * N chunks of all of them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# Chunks whose states are carried by one matrix. More of them cost more products, fewer more operations.
_CARRIED = 16


def chunked(q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_decay_BTH: Tensor, chunk: int) -> Tensor:
    """o_BTHV in the dtype of q; any floating dtype and device, any T.

    The last chunk is filled with tokens that write nothing. Decays are summed in float32, or in float64 where
    log_decay is; every exponent is at most 0, so nothing overflows. Raises ValueError for a chunk below 1.
    """
    if chunk < 1:
        raise ValueError(f"The chunked recurrence needs chunks of at least 1 token, got chunk={chunk}.")
    dtype, (batch, tokens, heads, _) = q_BTHK.dtype, q_BTHK.shape
    if v_BTHV.numel() == 0:
        # No elements, but connected to every input.
        return v_BTHV * (q_BTHK * k_BTHK).sum(-1, keepdim=True) * log_decay_BTH[..., None].to(dtype)
    chunk = min(chunk, tokens)
    q_GCK, k_GCK, v_GCV = (_in_chunks(x, chunk) for x in (q_BTHK, k_BTHK, v_BTHV))
    log_decay_BTH = log_decay_BTH.to(torch.promote_types(log_decay_BTH.dtype, torch.float32))
    sums_GC = _in_chunks(log_decay_BTH[..., None], chunk).squeeze(-1).cumsum(-1)

    # Within a chunk: token i reads token j <= i through the decays of j+1 .. i.
    scores_GCC = torch.bmm(q_GCK, k_GCK.mT) * _decay_between(sums_GC, sums_GC, 0).to(dtype)
    o_GCV = torch.bmm(scores_GCC, v_GCV)

    if tokens > chunk:
        # What each chunk adds to the state, seen from the chunk's end.
        total_G1 = sums_GC[:, -1:]
        to_end_GC = (total_G1 - sums_GC).exp().to(dtype)
        added_GKV = torch.bmm((k_GCK * to_end_GC[..., None]).mT, v_GCV)
        total_XN = total_G1.view(batch * heads, -1)
        entry_XNS = _states_on_entry(total_XN, added_GKV.view(*total_XN.shape, -1))
        entering_GCK = q_GCK * sums_GC.exp().to(dtype)[..., None]
        o_GCV = torch.baddbmm(o_GCV, entering_GCK, entry_XNS.reshape(added_GKV.shape))

    o_BHTV = o_GCV.view(batch, heads, -1, o_GCV.shape[-1])
    return o_BHTV[:, :, :tokens].transpose(1, 2)


def _states_on_entry(total_XN: Tensor, added_XNS: Tensor) -> Tensor:
    """The state before each of N steps, [X, N, S]: what the steps before it added, through the decays in between.

    `total_XN` is the log decay of a step and `added_XNS` what it adds, seen from its end.
    """
    sequences, steps, size = added_XNS.shape
    short = -steps % _CARRIED if steps > _CARRIED else 0
    group = min(steps, _CARRIED)
    total_YM = F.pad(total_XN, (0, short)).view(-1, group)
    added_YMS = F.pad(added_XNS, (0, 0, 0, short)).view(-1, group, size)
    through_YM = total_YM.cumsum(-1)
    before_YM = through_YM - total_YM
    # Step n reads step m < n of its group through the decays of m+1 .. n-1.
    carry_YMM = _decay_between(before_YM, through_YM, -1).to(added_XNS.dtype)
    entry_YMS = torch.bmm(carry_YMM, added_YMS)
    if steps > group:
        # A group is one step of a shorter recurrence.
        to_end_YM = (through_YM[:, -1:] - through_YM).exp().to(added_XNS.dtype)
        added_XGS = torch.bmm(to_end_YM[:, None], added_YMS).view(sequences, -1, size)
        entry_XGS = _states_on_entry(through_YM[:, -1].view(sequences, -1), added_XGS)
        reach_YM1 = before_YM.exp().to(added_XNS.dtype)[..., None]
        entry_YMS = torch.baddbmm(entry_YMS, reach_YM1, entry_XGS.reshape(-1, 1, size))
    return entry_YMS.view(sequences, -1, size)[:, :steps]


def _in_chunks(x_BTHX: Tensor, chunk: int) -> Tensor:
    """[B, T, H, X] to [B * H * N, C, X], zeros after the end."""
    tokens, width = x_BTHX.shape[1], x_BTHX.shape[-1]
    if tokens % chunk:
        x_BTHX = F.pad(x_BTHX, (0, 0, 0, 0, 0, -tokens % chunk))
    return x_BTHX.transpose(1, 2).reshape(-1, chunk, width)


def _decay_between(upto: Tensor, since: Tensor, diagonal: int) -> Tensor:
    """exp(upto_i - since_j) where j <= i + diagonal, else 0. The clamp keeps the part cut off from overflowing."""
    return (upto[..., :, None] - since[..., None, :]).clamp(max=0).exp().tril(diagonal)
