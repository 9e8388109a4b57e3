"""The Triton kernels of the recurrence, launched by `kernels.recurrence_triton`.

Importing this file needs Triton. Equations are in `kernels/recurrence.py`, and by chunk in `recurrence.cpp`; names
here are the same: L holds the decays between tokens, e those from the chunk's start, f those to its end, S the state
on entry, G its gradient on exit, g that of o, P and D the masked scores of (q, k) and (g, v).

One program walks the chunks of one head over a tile of BV values; what it keeps from chunk to chunk is its K x BV part
of the state or of its gradient, in float32 registers. Gradients of q, k and log_decay are sums over V, so programs
that share a head write parts, which are added up afterwards in one order: no atomics, a result repeats bit for bit.

    fused        one tile holds all of V: S and G of the whole head at once, and no parts to add
    live_state   the same kernel on tiles of at most 32 values, each spread over twice the warps
    phase_split  `queries` makes dq with S only, chunks side by side, `keys` the rest with G only, from q . dq

bfloat16 products run on tensor cores and add up in float32; float32 ones do without, and are for tests. Offsets are
64-bit. Sums of log_decay are masked sums of a C x C tile, because tl.cumsum does not compile for every target.
Shapes as in `kernels.recurrence`; BK, BV, BC are K, V and the chunk rounded up to powers of two of at least 16.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _decays(log_decay_ptr, stride_t, tokens, BC: tl.constexpr):
    """(sum of log decays to each token, to the end, L) of a chunk; its missing tokens decay nothing."""
    i = tl.arange(0, BC)
    step = tl.load(log_decay_ptr + i.to(tl.int64) * stride_t, mask=i < tokens, other=0.0)
    upto = i[:, None] >= i[None, :]
    through = tl.sum(tl.where(upto, step[None, :], 0.0), axis=1)
    # Above the diagonal the exponent may be large, and is not used.
    between = tl.where(upto, tl.exp(tl.minimum(through[:, None] - through[None, :], 0.0)), 0.0)
    return through, tl.sum(step, axis=0), between


@triton.jit
def _rows(ptr, stride, rows, columns, BR: tl.constexpr, BW: tl.constexpr):
    """A [BR, BW] tile, zeros outside of rows x columns."""
    i = tl.arange(0, BR)[:, None]
    x = tl.arange(0, BW)[None, :]
    return tl.load(ptr + i.to(tl.int64) * stride + x, mask=(i < rows) & (x < columns), other=0.0)


@triton.jit
def _put_rows(ptr, tile, stride, rows, columns, BR: tl.constexpr, BW: tl.constexpr):
    i = tl.arange(0, BR)[:, None]
    x = tl.arange(0, BW)[None, :]
    tl.store(ptr + i.to(tl.int64) * stride + x, tile.to(ptr.dtype.element_ty), mask=(i < rows) & (x < columns))


@triton.jit
def _dot(a, b, like):
    """a b in float32, from operands in the dtype of `like`."""
    return tl.dot(a.to(like.dtype), b.to(like.dtype), input_precision="ieee")


@triton.jit
def forward(
    q_ptr, k_ptr, v_ptr, log_decay_ptr, o_ptr, states_ptr,
    q_b, q_t, q_h, k_b, k_t, k_h, v_b, v_t, v_h, d_b, d_t, d_h,
    T, H, K, V, chunk,
    BC: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    b = (tl.program_id(0) // H).to(tl.int64)
    h = (tl.program_id(0) % H).to(tl.int64)
    first = tl.program_id(1) * BV
    width = V - first
    chunks = tl.cdiv(T, chunk)
    S = tl.zeros([BK, BV], dtype=tl.float32)
    for n in range(0, chunks):
        t = tl.cast(n, tl.int64) * chunk
        tokens = tl.minimum(chunk, T - n * chunk)
        entry_ptr = states_ptr + ((b * H + h) * chunks + n) * K * V + first
        _put_rows(entry_ptr, S, V, K, width, BK, BV)
        through, total, L = _decays(log_decay_ptr + b * d_b + t * d_t + h * d_h, d_t, tokens, BC)
        q = _rows(q_ptr + b * q_b + t * q_t + h * q_h, q_t, tokens, K, BC, BK)
        k = _rows(k_ptr + b * k_b + t * k_t + h * k_h, k_t, tokens, K, BC, BK)
        v = _rows(v_ptr + b * v_b + t * v_t + h * v_h + first, v_t, tokens, width, BC, BV)
        P = _dot(q, tl.trans(k), q) * L
        o = _dot(P, v, q) + tl.exp(through)[:, None] * _dot(q, S, q)
        _put_rows(o_ptr + ((b * T + t) * H + h) * V + first, o, H * V, tokens, width, BC, BV)
        fk = k.to(tl.float32) * tl.exp(total - through)[:, None]
        S = tl.exp(total) * S + _dot(tl.trans(fk), v, q)


@triton.jit
def backward(
    q_ptr, k_ptr, v_ptr, log_decay_ptr, g_ptr, states_ptr, dq_ptr, dk_ptr, dv_ptr, dlog_ptr,
    q_b, q_t, q_h, k_b, k_t, k_h, v_b, v_t, v_h, d_b, d_t, d_h, g_b, g_t, g_h,
    B, T, H, K, V, chunk,
    BC: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """All gradients in one sweep from the last chunk to the first. dq, dk and dlog are parts by tile of V."""
    b = (tl.program_id(0) // H).to(tl.int64)
    h = (tl.program_id(0) % H).to(tl.int64)
    part = tl.program_id(1).to(tl.int64) * B + b
    first = tl.program_id(1) * BV
    width = V - first
    chunks = tl.cdiv(T, chunk)
    i = tl.arange(0, BC)
    G = tl.zeros([BK, BV], dtype=tl.float32)
    after = 0.0
    for back in range(0, chunks):
        n = chunks - 1 - back
        t = tl.cast(n, tl.int64) * chunk
        tokens = tl.minimum(chunk, T - n * chunk)
        through, total, L = _decays(log_decay_ptr + b * d_b + t * d_t + h * d_h, d_t, tokens, BC)
        e = tl.exp(through)[:, None]
        f = tl.exp(total - through)[:, None]
        q = _rows(q_ptr + b * q_b + t * q_t + h * q_h, q_t, tokens, K, BC, BK)
        k = _rows(k_ptr + b * k_b + t * k_t + h * k_h, k_t, tokens, K, BC, BK)
        v = _rows(v_ptr + b * v_b + t * v_t + h * v_h + first, v_t, tokens, width, BC, BV)
        g = _rows(g_ptr + b * g_b + t * g_t + h * g_h + first, g_t, tokens, width, BC, BV)
        row = (part * T + t) * H + h
        P = _dot(q, tl.trans(k), q) * L
        dv = _dot(tl.trans(P), g, q) + f * _dot(k, G, q)
        _put_rows(dv_ptr + ((b * T + t) * H + h) * V + first, dv, H * V, tokens, width, BC, BV)
        D = _dot(g, tl.trans(v), q) * L
        dk = _dot(tl.trans(D), q, q) + f * _dot(v, tl.trans(G), q)
        _put_rows(dk_ptr + row * K, dk, H * K, tokens, K, BC, BK)
        grown_k = tl.sum(k.to(tl.float32) * dk, axis=1)
        G = tl.exp(total) * G + _dot(tl.trans(q.to(tl.float32) * e), g, q)
        S = _rows(states_ptr + ((b * H + h) * chunks + n) * K * V + first, V, K, width, BK, BV)
        dq = _dot(D, k, q) + e * _dot(g, tl.trans(S), q)
        _put_rows(dq_ptr + row * K, dq, H * K, tokens, K, BC, BK)
        grown = tl.sum(q.to(tl.float32) * dq, axis=1) - grown_k
        dlog = after + tl.sum(tl.where(i[:, None] <= i[None, :], grown[None, :], 0.0), axis=1)
        # <G, S>, the first one's, is exact whatever the sums before it lost. Summed axis by axis, it would not compile
        # for sm_100 (a pass over tensor memory fails in Triton 3.7.1).
        after = tl.sum(G * S)
        tl.store(dlog_ptr + row + i.to(tl.int64) * H, tl.where(i == 0, after, dlog), mask=i < tokens)


@triton.jit
def queries(
    q_ptr, k_ptr, v_ptr, log_decay_ptr, g_ptr, states_ptr, dq_ptr, qdq_ptr,
    q_b, q_t, q_h, k_b, k_t, k_h, v_b, v_t, v_h, d_b, d_t, d_h, g_b, g_t, g_h,
    T, H, K, V, chunk,
    BC: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """dq and q . dq of one chunk, with only S at hand."""
    b = (tl.program_id(0) // H).to(tl.int64)
    h = (tl.program_id(0) % H).to(tl.int64)
    n = tl.program_id(1)
    chunks = tl.cdiv(T, chunk)
    i = tl.arange(0, BC)
    t = tl.cast(n, tl.int64) * chunk
    tokens = tl.minimum(chunk, T - n * chunk)
    through, _, L = _decays(log_decay_ptr + b * d_b + t * d_t + h * d_h, d_t, tokens, BC)
    v = _rows(v_ptr + b * v_b + t * v_t + h * v_h, v_t, tokens, V, BC, BV)
    g = _rows(g_ptr + b * g_b + t * g_t + h * g_h, g_t, tokens, V, BC, BV)
    D = _dot(g, tl.trans(v), v) * L
    k = _rows(k_ptr + b * k_b + t * k_t + h * k_h, k_t, tokens, K, BC, BK)
    S = _rows(states_ptr + ((b * H + h) * chunks + n) * K * V, V, K, V, BK, BV)
    dq = _dot(D, k, v) + tl.exp(through)[:, None] * _dot(g, tl.trans(S), v)
    row = (b * T + t) * H + h
    _put_rows(dq_ptr + row * K, dq, H * K, tokens, K, BC, BK)
    q = _rows(q_ptr + b * q_b + t * q_t + h * q_h, q_t, tokens, K, BC, BK)
    tl.store(qdq_ptr + row + i.to(tl.int64) * H, tl.sum(q.to(tl.float32) * dq, axis=1), mask=i < tokens)


@triton.jit
def keys(
    q_ptr, k_ptr, v_ptr, log_decay_ptr, g_ptr, states_ptr, qdq_ptr, dk_ptr, dv_ptr, dlog_ptr,
    q_b, q_t, q_h, k_b, k_t, k_h, v_b, v_t, v_h, d_b, d_t, d_h, g_b, g_t, g_h,
    T, H, K, V, chunk,
    BC: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """dk, dv and, from q . dq, dlog, from the last chunk to the first with only G kept."""
    b = (tl.program_id(0) // H).to(tl.int64)
    h = (tl.program_id(0) % H).to(tl.int64)
    chunks = tl.cdiv(T, chunk)
    i = tl.arange(0, BC)
    G = tl.zeros([BK, BV], dtype=tl.float32)
    after = 0.0
    for back in range(0, chunks):
        n = chunks - 1 - back
        t = tl.cast(n, tl.int64) * chunk
        row = (b * T + t) * H + h
        tokens = tl.minimum(chunk, T - n * chunk)
        through, total, L = _decays(log_decay_ptr + b * d_b + t * d_t + h * d_h, d_t, tokens, BC)
        f = tl.exp(total - through)[:, None]
        q = _rows(q_ptr + b * q_b + t * q_t + h * q_h, q_t, tokens, K, BC, BK)
        k = _rows(k_ptr + b * k_b + t * k_t + h * k_h, k_t, tokens, K, BC, BK)
        g = _rows(g_ptr + b * g_b + t * g_t + h * g_h, g_t, tokens, V, BC, BV)
        P = _dot(q, tl.trans(k), q) * L
        dv = _dot(tl.trans(P), g, q) + f * _dot(k, G, q)
        _put_rows(dv_ptr + row * V, dv, H * V, tokens, V, BC, BV)
        v = _rows(v_ptr + b * v_b + t * v_t + h * v_h, v_t, tokens, V, BC, BV)
        D = _dot(g, tl.trans(v), q) * L
        dk = _dot(tl.trans(D), q, q) + f * _dot(v, tl.trans(G), q)
        _put_rows(dk_ptr + row * K, dk, H * K, tokens, K, BC, BK)
        G = tl.exp(total) * G + _dot(tl.trans(q.to(tl.float32) * tl.exp(through)[:, None]), g, q)
        qdq = tl.load(qdq_ptr + row + i.to(tl.int64) * H, mask=i < tokens, other=0.0)
        grown = qdq - tl.sum(k.to(tl.float32) * dk, axis=1)
        dlog = after + tl.sum(tl.where(i[:, None] <= i[None, :], grown[None, :], 0.0), axis=1)
        # S passes by once, and none of it stays.
        S = _rows(states_ptr + ((b * H + h) * chunks + n) * K * V, V, K, V, BK, BV)
        after = tl.sum(G * S)
        tl.store(dlog_ptr + row + i.to(tl.int64) * H, tl.where(i == 0, after, dlog), mask=i < tokens)
