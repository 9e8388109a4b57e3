// The gated linear recurrence in float32, forward and backward, with a plain C interface for ctypes. One thread.
//
//   S_t = a_t S_(t-1) + k_t v_t^T,   o_t = q_t S_t,   a_t = exp(log_decay_t)
//
// Chunks of C tokens are walked in order. With L_ij = a_(j+1) .. a_i (0 above the diagonal), e_i = a_0 .. a_i,
// f_j = L_(C-1)j, S the state on entry, G the gradient of the state on exit and g that of o:
//
//   P = (q k^T) L          o  = P v + (e q) S              S <- e_(C-1) S + (f k)^T v
//   D = (g v^T) L          dq = D k + (e g) S^T            dk = D^T q + (f v) G^T
//   dv = P^T g + (f k) G                                   G <- e_(C-1) G + q^T (e g)
//
// and <G, S> on entry is the gradient of the first log_decay; from a token to the one before, it grows by
// q . dq - k . dk. Decays are products of the a_t: nothing is divided, so nothing overflows.
//
// Every sum has one order whatever the variant, and so the variants give the same bits. Shapes as in recurrence.py; X^T
// in a name is XT. The caller checks dtypes, sizes and strides: nothing here can.

#include <vector>

#include "recurrence_chunk.h"

namespace {

// The walk over S, G and the new G of a tile of kR rows of V and one vector of K: what the variants differ in.
template <int kR, bool kWithS, bool kWithG>
INLINE void tile(Size tokens, const float* q, const float* eg, const float* fv, const float* ST, float* GT, float total,
                 Size Kp, Size Vp, float* __restrict__ dq, float* __restrict__ dk) {
    Vec S[kR], G[kR], next[kR];
    for (int r = 0; r < kR; ++r) {
        if (kWithS) S[r] = load(ST + r * Kp);
        if (kWithG) {
            G[r] = load(GT + r * Kp);
            next[r] = total * G[r];
        }
    }
    for (Size i = 0; i < tokens; ++i) {
        if constexpr (kWithS) {
            Vec sum = load(dq + i * Kp);
            for (int r = 0; r < kR; ++r) sum += S[r] * eg[i * Vp + r];
            store(dq + i * Kp, sum);
        }
        if constexpr (kWithG) {
            const Vec read = load(q + i * Kp);
            Vec sum = load(dk + i * Kp);
            for (int r = 0; r < kR; ++r) {
                sum += G[r] * fv[i * Vp + r];
                next[r] += read * eg[i * Vp + r];
            }
            store(dk + i * Kp, sum);
        }
    }
    if (kWithG)
        for (int r = 0; r < kR; ++r) store(GT + r * Kp, next[r]);
}

// Runs the tile over all of V and K: kR rows of V and one vector of K at a time.
template <int kR, bool kWithS, bool kWithG>
INLINE void walk(const Chunk& c) {
    for (Size x = 0; x < c.Kp; x += kLanes)
        for (Size y = 0; y < c.Vp; y += kR)
            tile<kR, kWithS, kWithG>(c.n, c.q + x, c.eg + y, c.fv + y, c.ST + y * c.Kp + x, c.GT + y * c.Kp + x,
                                     c.total(), c.Kp, c.Vp, c.dq + x, c.dk + x);
}

struct Inputs {
    View q, k, v, log_decay, g;
    const float* states;  // [B, H, N, K, V], contiguous.
};

struct Gradients {
    float *q, *k, *v, *log_decay;  // As their inputs, contiguous.
};

// Copies a chunk in and takes its decays.
INLINE void enter(Chunk& c, const Inputs& in, Size b, Size chunk, Size h, bool backward) {
    const Size t = chunk * c.is.chunk;
    c.n = smaller(c.is.chunk, c.is.T - t);
    c.tokens(in.q, b, t, h, c.is.K, c.Kp, c.q);
    c.tokens(in.k, b, t, h, c.is.K, c.Kp, c.k);
    c.tokens(in.v, b, t, h, c.is.V, c.Vp, c.v);
    c.decays(in.log_decay, b, t, h);
    if (backward) {
        c.tokens(in.g, b, t, h, c.is.V, c.Vp, c.g);
        c.scale(c.e, 1, c.g, c.Vp, c.eg);
    }
}

// One chunk of o, and S from its entry to its exit.
INLINE void forward(Chunk& c, const Inputs& in, Size b, Size chunk, Size h, float* o) {
    enter(c, in, b, chunk, h, false);
    transpose(c.k, c.Cp, c.Kp, c.kT);
    c.scale(c.e, 1, c.q, c.Kp, c.eq);
    for (Size i = 0; i < c.n; i += kRows) {
        float* const o_i = c.o + i * c.Vp;
        c.scores(i, c.q, c.Kp, c.is.K, c.kT, c.P);
        product<false>(o_i, c.Vp, c.P + i * c.Cp, c.Cp, 1, c.v, c.Vp, smaller(i + kRows, c.n), c.Vp);
        if (chunk > 0) product<true>(o_i, c.Vp, c.eq + i * c.Kp, c.Kp, 1, c.S, c.Vp, c.is.K, c.Vp);
    }
    c.unpack(c.o, c.Vp, c.is.V, o, c.is.H * c.is.V);
    if (chunk + 1 == c.is.N()) return;
    const Vec total = Vec{} + c.total();
    for (Size x = 0; x < c.Kp * c.Vp; x += kLanes) store(c.S + x, total * load(c.S + x));
    c.scale(c.f(), 1, c.k, c.Kp, c.fk);
    for (Size x = 0; x < c.is.K; x += kRows)
        product<true>(c.S + x * c.Vp, c.Vp, c.fk + x, 1, c.Kp, c.v, c.Vp, c.n, c.Vp);
}

// S on entry, transposed.
INLINE void enter_state(Chunk& c, const Inputs& in, Size b, Size chunk, Size h) {
    const Size size = c.is.K * c.is.V;
    c.pack(in.states + ((b * c.is.H + h) * c.is.N() + chunk) * size, c.is.V, c.is.K, c.is.V, c.Vp, c.Kp, c.S);
    transpose(c.S, c.Kp, c.Vp, c.ST);
}

// D and the part of dq that stays in the chunk.
INLINE void queries_within(Chunk& c, float* D) {
    transpose(c.v, c.Cp, c.Vp, c.vT);
    for (Size i = 0; i < c.n; i += kRows) {
        c.scores(i, c.g, c.Vp, c.is.V, c.vT, D);
        product<false>(c.dq + i * c.Kp, c.Kp, D + i * c.Cp, c.Cp, 1, c.k, c.Kp, smaller(i + kRows, c.n), c.Kp);
    }
}

// P, dv, and the part of dk that stays in the chunk.
INLINE void keys_within(Chunk& c, const float* D) {
    transpose(c.k, c.Cp, c.Kp, c.kT);
    c.scale(c.f(), 1, c.k, c.Kp, c.fk);
    c.scale(c.f(), 1, c.v, c.Vp, c.fv);
    transpose(c.GT, c.Vp, c.Kp, c.G);
    for (Size i = 0; i < c.n; i += kRows) c.scores(i, c.q, c.Kp, c.is.K, c.kT, c.P);
    for (Size j = 0; j < c.n; j += kRows) {
        const Size at = j * c.Cp + j;
        product<false>(c.dk + j * c.Kp, c.Kp, D + at, 1, c.Cp, c.q + j * c.Kp, c.Kp, c.n - j, c.Kp);
        product<false>(c.dv + j * c.Vp, c.Vp, c.P + at, 1, c.Cp, c.g + j * c.Vp, c.Vp, c.n - j, c.Vp);
        product<true>(c.dv + j * c.Vp, c.Vp, c.fk + j * c.Kp, c.Kp, 1, c.G, c.Vp, c.is.K, c.Vp);
    }
}

// log_decay's gradient, backwards from that of the token after the chunk; returns that of the chunk's first token.
// There it is <G, S>, which stops rounding errors from adding up over chunks. `a` is free by now and holds k . dk.
INLINE double decays_within(Chunk& c, double after, float* dlog) {
    c.dots(c.k, c.dk, c.a);
    double running = after;
    for (Size t = c.n - 1; t >= 0; --t) {
        running += static_cast<double>(dlog[t * c.is.H]) - static_cast<double>(c.a[t]);
        dlog[t * c.is.H] = static_cast<float>(running);
    }
    Vec sum{};
    for (Size x = 0; x < c.Kp * c.Vp; x += kLanes) sum += load(c.ST + x) * load(c.GT + x);
    double first = 0.0;
    for (Size x = 0; x < kLanes; ++x) first += static_cast<double>(sum[x]);
    dlog[0] = static_cast<float>(first);
    return first;
}

// q . dq by token, into log_decay's gradient until decays_within has the rest.
INLINE void leave_queries(Chunk& c, float* dq, float* dlog) {
    c.unpack(c.dq, c.Kp, c.is.K, dq, c.is.H * c.is.K);
    c.dots(c.q, c.dq, c.a);
    for (Size t = 0; t < c.n; ++t) dlog[t * c.is.H] = c.a[t];
}

// kR: rows of V in a tile. kSplit: dq of all chunks first, forwards, with only S live and kQueryR rows in a tile, then
// the rest backwards, with only G live; D and q . dq are kept from one to the other.
template <bool kSplit, int kR, int kQueryR>
INLINE void backward(const Inputs& in, const Gradients& out, const Sizes& is) {
    Chunk c(is, true);
    const Size N = is.N(), square = c.Cp * c.Cp, state = c.Kp * c.Vp;
    Aligned kept(kSplit ? N * is.H * square : 0), carried(is.H * state);
    std::vector<double> after(static_cast<std::size_t>(is.H));
    // All heads of a chunk before the next chunk, because their tokens lie side by side.
    for (Size b = 0; b < is.B; ++b) {
        if (kSplit)
            for (Size chunk = 0; chunk < N; ++chunk)
                for (Size h = 0; h < is.H; ++h) {
                    const Size row = (b * is.T + chunk * is.chunk) * is.H + h;
                    enter(c, in, b, chunk, h, true);
                    queries_within(c, kept.at + (chunk * is.H + h) * square);
                    enter_state(c, in, b, chunk, h);
                    if (chunk > 0) walk<kQueryR, true, false>(c);
                    leave_queries(c, out.q + row * is.K, out.log_decay + row);
                }
        carried.clear(is.H * state);
        for (double& of : after) of = 0.0;
        for (Size chunk = N; chunk-- > 0;)
            for (Size h = 0; h < is.H; ++h) {
                const Size row = (b * is.T + chunk * is.chunk) * is.H + h;
                c.GT = carried.at + h * state;
                enter(c, in, b, chunk, h, true);
                float* const D = kSplit ? kept.at + (chunk * is.H + h) * square : c.D;
                if (!kSplit) queries_within(c, D);
                keys_within(c, D);
                enter_state(c, in, b, chunk, h);
                if (N > 1) walk<kR, !kSplit, true>(c);
                if (!kSplit) leave_queries(c, out.q + row * is.K, out.log_decay + row);
                c.unpack(c.dk, c.Kp, is.K, out.k + row * is.K, is.H * is.K);
                c.unpack(c.dv, c.Vp, is.V, out.v + row * is.V, is.H * is.V);
                after[h] = decays_within(c, after[h], out.log_decay + row);
            }
    }
}

}  // namespace

extern "C" {

// How many vector registers this instruction set has, and so the most that a cap can leave.
std::int64_t recurrence_vector_registers() { return kLanes == 16 ? 32 : 16; }

// sizes: B, T, H, K, V, chunk, then the strides by b, t and h of q, k, v, log_decay and grad_o, whose last stride is 1.
// o: [B, T, H, V]; states: [B, H, N, K, V], the state on entry of each chunk.
void recurrence_forward_f32(const float* q, const float* k, const float* v, const float* log_decay, float* o,
                            float* states, const std::int64_t* sizes) {
    const Sizes& is = *reinterpret_cast<const Sizes*>(sizes);
    const Size* s = is.strides;
    const Inputs in{{q, s}, {k, s + 3}, {v, s + 6}, {log_decay, s + 9}, {nullptr, nullptr}, states};
    Chunk c(is, false);
    Aligned carried(is.H * c.Kp * c.Vp);
    for (Size b = 0; b < is.B; ++b) {
        carried.clear(is.H * c.Kp * c.Vp);
        for (Size chunk = 0; chunk < is.N(); ++chunk)
            for (Size h = 0; h < is.H; ++h) {
                c.S = carried.at + h * c.Kp * c.Vp;
                copy(c.S, c.Vp, is.K, is.V, states + ((b * is.H + h) * is.N() + chunk) * is.K * is.V, is.V);
                forward(c, in, b, chunk, h, o + ((b * is.T + chunk * is.chunk) * is.H + h) * is.V);
            }
    }
}

#define BACKWARD(NAME, ...)                                                                                         \
    void NAME(const float* q, const float* k, const float* v, const float* log_decay, const float* grad_o,          \
              const float* states, float* dq, float* dk, float* dv, float* dlog_decay, const std::int64_t* sizes) { \
        const Sizes& is = *reinterpret_cast<const Sizes*>(sizes);                                                   \
        const Size* s = is.strides;                                                                                 \
        backward<__VA_ARGS__>({{q, s}, {k, s + 3}, {v, s + 6}, {log_decay, s + 9}, {grad_o, s + 12}, states},       \
                              {dq, dk, dv, dlog_decay}, is);                                                        \
    }

BACKWARD(recurrence_backward_fused_f32, false, kTile, kTile)
BACKWARD(recurrence_backward_phase_split_f32, true, kTile, 2 * kTile)
BACKWARD(recurrence_backward_live_state_f32, false, kTile / 2, kTile / 2)

}  // extern "C"
