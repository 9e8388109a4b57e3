// What recurrence.cpp is made of: vectors, small matrix products, and a chunk of tokens copied into aligned scratch.
//
// A chunk is zero-padded, so that inputs may have any strides and no loop needs a mask. Plain C++ with the vector
// extension of g++ and clang++, so that each instruction set gets its own width. X^T in a name is XT.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#define INLINE inline __attribute__((always_inline))

namespace {

using Size = std::int64_t;

#if defined(__AVX512F__)
constexpr Size kLanes = 16;
constexpr int kTile = 8;  // Rows of V in a tile: S, G and the new G are 24 of 32 registers.
#elif defined(__AVX__)
constexpr Size kLanes = 8;
constexpr int kTile = 4;  // 12 of 16.
#else
constexpr Size kLanes = 4;
constexpr int kTile = 4;
#endif
constexpr Size kRows = 4;  // Rows of a product at a time; divides kLanes.

typedef float Vec __attribute__((vector_size(4 * kLanes), may_alias));
typedef float Anywhere __attribute__((vector_size(4 * kLanes), may_alias, aligned(4)));

INLINE Vec load(const float* at) { return *reinterpret_cast<const Vec*>(at); }
INLINE void store(float* at, Vec x) { *reinterpret_cast<Vec*>(at) = x; }
INLINE Size padded(Size width) { return (width + kLanes - 1) / kLanes * kLanes; }
INLINE Size smaller(Size a, Size b) { return a < b ? a : b; }

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLE  // g++ before 12.
typedef std::int32_t Lanes __attribute__((vector_size(4 * kLanes)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Lanes{__VA_ARGS__})
#endif

// Two rows of a block swap their off-diagonal squares of side d.
template <int d, int... l>
INLINE void swap_squares(Vec& a, Vec& b, std::integer_sequence<int, l...>) {
    const Vec above = SHUFFLE(a, b, ((l & d) ? kLanes + l - d : l)...);
    b = SHUFFLE(a, b, ((l & d) ? kLanes + l : l + d)...);
    a = above;
}

template <int d>
INLINE void transpose_block(Vec (&x)[kLanes]) {
    for (int i = 0; i < kLanes; ++i) {
        if ((i & d) == 0) swap_squares<d>(x[i], x[i + d], std::make_integer_sequence<int, kLanes>());
    }
    if constexpr (d > 1) transpose_block<d / 2>(x);
}

// to[c][r] = from[r][c]; rows and columns are padded.
__attribute__((noinline)) void transpose(const float* from, Size rows, Size columns, float* to) {
    for (Size r = 0; r < rows; r += kLanes) {
        for (Size c = 0; c < columns; c += kLanes) {
            Vec x[kLanes];
            for (Size i = 0; i < kLanes; ++i) x[i] = load(from + (r + i) * columns + c);
            transpose_block<kLanes / 2>(x);
            for (Size i = 0; i < kLanes; ++i) store(to + (c + i) * rows + r, x[i]);
        }
    }
}

template <int kVectors, bool kAdd>
INLINE void product_block(float* c, Size ldc, const float* a, Size a_row, Size a_column, const float* b, Size ldb,
                          Size depth) {
    Vec sum[kRows][kVectors];
    for (Size m = 0; m < kRows; ++m)
        for (Size n = 0; n < kVectors; ++n) sum[m][n] = kAdd ? load(c + m * ldc + n * kLanes) : Vec{};
    for (Size x = 0; x < depth; ++x)
        for (Size n = 0; n < kVectors; ++n) {
            const Vec right = load(b + x * ldb + n * kLanes);
            for (Size m = 0; m < kRows; ++m) sum[m][n] += a[m * a_row + x * a_column] * right;
        }
    for (Size m = 0; m < kRows; ++m)
        for (Size n = 0; n < kVectors; ++n) store(c + m * ldc + n * kLanes, sum[m][n]);
}

// c = a b, or c += a b, for kRows rows of c: a is read by element through its two strides, b by whole vectors.
template <bool kAdd>
INLINE void product(float* c, Size ldc, const float* a, Size a_row, Size a_column, const float* b, Size ldb, Size depth,
                    Size width) {
    Size n = 0;
    for (; n + 2 * kLanes <= width; n += 2 * kLanes)
        product_block<2, kAdd>(c + n, ldc, a, a_row, a_column, b + n, ldb, depth);
    if (n < width) product_block<1, kAdd>(c + n, ldc, a, a_row, a_column, b + n, ldb, depth);
}

INLINE void copy(const float* from, Size from_stride, Size rows, Size width, float* to, Size to_stride) {
    const Size whole = width / kLanes * kLanes;
    for (Size t = 0; t < rows; ++t, from += from_stride, to += to_stride) {
        for (Size x = 0; x < whole; x += kLanes)
            *reinterpret_cast<Anywhere*>(to + x) = *reinterpret_cast<const Anywhere*>(from + x);
        for (Size x = whole; x < width; ++x) to[x] = from[x];
    }
}

struct Sizes {
    Size B, T, H, K, V, chunk, strides[15];  // Strides of q, k, v, log_decay and grad_o by b, t, h.
    Size C() const { return smaller(chunk, T); }
    Size N() const { return T == 0 ? 0 : (T + chunk - 1) / chunk; }
};

struct View {
    const float* at;
    const Size* stride;
    const float* operator()(Size b, Size t, Size h) const { return at + b * stride[0] + t * stride[1] + h * stride[2]; }
};

// Floats whose first is aligned to a vector; not set to anything.
struct Aligned {
    std::unique_ptr<float[]> memory;
    float* at;
    explicit Aligned(Size count) : memory(new float[static_cast<std::size_t>(count + kLanes)]) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
        at = memory.get() + (-address % sizeof(Vec)) / sizeof(float);
    }
    void clear(Size count) {
        for (Size x = 0; x < count; ++x) at[x] = 0.0f;
    }
};

// One head's chunk in scratch. Widths are padded with zeros, and so are the tokens.
struct Chunk {
    const Sizes& is;
    const Size Kp, Vp, Cp;
    Aligned memory;
    float* free_;
    float *q, *k, *v, *g, *kT, *vT, *fk, *eg, *fv, *eq, *P, *D, *L, *dq, *dk, *dv, *o, *S, *ST, *G, *GT, *a, *e;
    Size n = 0;  // Tokens that this chunk has.

    Chunk(const Sizes& sizes, bool backward)
        : is(sizes), Kp(padded(sizes.K)), Vp(padded(sizes.V)), Cp(padded(sizes.C())), memory(count(backward)) {
        // Padding is never written again, so it is 0 once and for all.
        memory.clear(count(backward));
        free_ = memory.at;
        for (float** x : {&q, &k, &kT, &fk}) *x = take(Cp * Kp);
        for (float** x : {&a, &e}) *x = take(Cp);
        for (float** x : {&L, &P}) *x = take(Cp * Cp);
        v = take(Cp * Vp);
        if (backward) {
            D = take(Cp * Cp);
            for (float** x : {&dq, &dk}) *x = take(Cp * Kp);
            for (float** x : {&g, &vT, &eg, &fv, &dv}) *x = take(Cp * Vp);
            for (float** x : {&S, &ST, &G}) *x = take(Kp * Vp);
        } else {
            eq = take(Cp * Kp);
            o = take(Cp * Vp);
        }
    }
    Size count(bool backward) const {
        return Cp * ((backward ? 6 : 5) * Kp + (backward ? 6 : 2) * Vp + (backward ? 3 : 2) * Cp + 2) +
               (backward ? 3 * Kp * Vp : 0);
    }
    float* take(Size floats) {
        free_ += floats;
        return free_ - floats;
    }

    INLINE void pack(const float* from, Size stride, Size rows, Size width, Size wide, Size all, float* to) const {
        copy(from, stride, rows, width, to, wide);
        for (Size x = rows * wide; x < all * wide; x += kLanes) store(to + x, Vec{});
    }
    INLINE void unpack(const float* from, Size wide, Size width, float* to, Size stride) const {
        copy(from, wide, n, width, to, stride);
    }
    INLINE void tokens(const View& of, Size b, Size t, Size h, Size width, Size wide, float* to) const {
        pack(of(b, t, h), of.stride[1], n, width, wide, Cp, to);
    }
    INLINE void scale(const float* by, Size stride, const float* from, Size wide, float* to) const {
        for (Size i = 0; i < n; ++i)
            for (Size x = 0; x < wide; x += kLanes) store(to + i * wide + x, by[i * stride] * load(from + i * wide + x));
    }
    // L row by row: each is the one above times a_i. Tiles above the diagonal are never written and stay 0.
    INLINE void decays(const View& log_decay, Size b, Size t, Size h) {
        for (Size i = 0; i < n; ++i) a[i] = std::exp(*log_decay(b, t + i, h));
        for (Size i = 0; i < n; ++i) {
            if (i > 0)
                for (Size j = 0; j <= i; j += kLanes) store(L + i * Cp + j, a[i] * load(L + (i - 1) * Cp + j));
            L[i * Cp + i] = 1.0f;
            e[i] = i > 0 ? a[i] * e[i - 1] : a[0];
        }
    }
    const float* f() const { return L + (n - 1) * Cp; }
    float total() const { return e[n - 1]; }
    // kRows rows of (left right) L: P of q and k, or D of g and v.
    INLINE void scores(Size i, const float* left, Size wide, Size width, const float* rightT, float* to) const {
        const Size upto = padded(i + kRows);
        product<false>(to + i * Cp, Cp, left + i * wide, wide, 1, rightT, Cp, width, upto);
        for (Size m = i; m < i + kRows; ++m)
            for (Size j = 0; j < upto; j += kLanes) store(to + m * Cp + j, load(to + m * Cp + j) * load(L + m * Cp + j));
    }
    // to[i] = x_i . y_i over K, kLanes tokens at a time: a transpose turns their sums into one vector.
    __attribute__((noinline)) void dots(const float* x, const float* y, float* to) const {
        for (Size i = 0; i < n; i += kLanes) {
            Vec sum[kLanes];
            for (Size m = 0; m < kLanes; ++m) {
                sum[m] = Vec{};
                for (Size c = 0; c < Kp; c += kLanes) sum[m] += load(x + (i + m) * Kp + c) * load(y + (i + m) * Kp + c);
            }
            transpose_block<kLanes / 2>(sum);
            for (Size m = 1; m < kLanes; ++m) sum[0] += sum[m];
            store(to + i, sum[0]);
        }
    }
};

}  // namespace
