"""The gated linear recurrence, one token after another: the reference of `kernels.recurrence_forms`.

    S_t = a_t S_(t-1) + k_t v_t^T        S is a K x V matrix per head, S_0 = 0, a_t = exp(log_decay_t) in (0, 1]
    o_t = q_t S_t

and with dS_t the gradient of S_t, from the last token to the first (dS after the last is 0):

    dS_t = q_t do_t^T + a_(t+1) dS_(t+1)
    dq_t = S_t do_t,   dk_t = dS_t v_t,   dv_t = k_t dS_t
    dlog_decay_t = a_t <dS_t, S_(t-1)> = dlog_decay_(t+1) + q_t . dq_t - k_t . dk_t

The last equality follows from <dS_t, S_t> with S_t, and then with dS_t, written out by the lines above. It is the
recurrence of Mamba-2 (Dao and Gu, 2024, arXiv:2405.21060), there with its chunked form.

Shapes: B sequences, T tokens, H heads, K key width, V value width. q, k: [B, T, H, K]; v, o: [B, T, H, V];
log_decay: [B, T, H], at most 0, in float32 also where q, k and v are not.

Bytes: o needs q, k, v and log_decay once, 4 (2K + 2V + 1) a token and head in float32. This form moves the state of
4 K V bytes several times a token, and autograd keeps one state a token.
"""

from __future__ import annotations

import torch
from torch import Tensor


def reference(q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_decay_BTH: Tensor, chunk: int = 0) -> Tensor:
    """o_BTHV in the dtype of q, by the equations as written; any floating dtype and device. `chunk` is not used."""
    if q_BTHK.shape[1] == 0:
        # No elements, but connected to every input.
        return v_BTHV * (q_BTHK * k_BTHK).sum(-1, keepdim=True) * log_decay_BTH[..., None].to(v_BTHV.dtype)
    state_BHKV = q_BTHK.new_zeros((*q_BTHK.shape[:1], *q_BTHK.shape[2:], v_BTHV.shape[-1]))
    decay_BTH = log_decay_BTH.exp().to(q_BTHK.dtype)
    outputs = []
    for t in range(q_BTHK.shape[1]):
        written_BHKV = k_BTHK[:, t, :, :, None] * v_BTHV[:, t, :, None, :]
        state_BHKV = decay_BTH[:, t, :, None, None] * state_BHKV + written_BHKV
        outputs.append((q_BTHK[:, t, :, None, :] @ state_BHKV).squeeze(-2))
    return torch.stack(outputs, dim=1)
