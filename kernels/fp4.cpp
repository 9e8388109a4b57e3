// Quantization to 4-bit e2m1 with block scales, with a plain C interface for ctypes. The equations are in fp4.py.
//
// One thread. x is float32, stored by rows, a whole number of blocks wide. The caller checks dtypes and sizes: nothing
// here can.

#include <cstdint>

#include "quantize_round.h"

namespace {

constexpr float kLargestE2M1 = 6.0f;
constexpr float kSmallestE4M3 = 0x1p-9f;
constexpr std::uint8_t kNanE8M0 = 255;
constexpr std::int64_t kNvBlock = 16;
constexpr std::int64_t kMxBlock = 32;

// The nearest e2m1 value, ties to the even code; above 5 it is 6, and NaN is +0, which its scale makes NaN again.
inline std::uint8_t e2m1_of(float value) {
    const std::int32_t a = magnitude_of(value);
    const auto above = [a](float tie) { return static_cast<std::int32_t>(a > magnitude_of(tie)); };
    const auto from = [a](float tie) { return static_cast<std::int32_t>(a >= magnitude_of(tie)); };
    const std::int32_t code =
        above(0.25f) + from(0.75f) + above(1.25f) + from(1.75f) + above(2.5f) + from(3.5f) + above(5.0f);
    // Magnitudes as integers sort NaN on top, so it is told apart here; with a mask, so that the loop is vectorised.
    const std::int32_t number = static_cast<std::int32_t>(a > static_cast<std::int32_t>(kExponent)) - 1;
    return static_cast<std::uint8_t>((code | static_cast<std::int32_t>((bits_of(value) >> 28) & 8u)) & number);
}

// Two codes a byte, the first in the low half.
template <std::int64_t kBlock>
inline void pack(const std::uint8_t* __restrict__ codes, std::uint8_t* __restrict__ packed) {
    for (std::int64_t i = 0; i < kBlock / 2; ++i) {
        packed[i] = static_cast<std::uint8_t>(codes[2 * i] | (codes[2 * i + 1] << 4));
    }
}

}  // namespace

extern "C" {

// x: [rows, columns]; packed: [rows, columns / 2]; scale: [rows, columns / 16] e4m3; tensor_scale: one.
void fp4_nv(const float* x, std::int64_t rows, std::int64_t columns, std::uint8_t* packed, std::uint8_t* scale,
            float* tensor_scale) {
    const std::int64_t blocks = rows * columns / kNvBlock;
    const float whole = float_of(static_cast<std::uint32_t>(largest_of(x, rows * columns)));
    const float ratio = whole / (E4M3::kLargest * kLargestE2M1);
    const float overall = ratio < kSmallestScale ? kSmallestScale : ratio;
    *tensor_scale = overall;
    std::uint8_t codes[kNvBlock];
    for (std::int64_t b = 0; b < blocks; ++b) {
        const float* x_B = x + b * kNvBlock;
        const float largest = float_of(static_cast<std::uint32_t>(largest_of(x_B, kNvBlock)));
        const float wanted = largest / kLargestE2M1 / overall;
        const float near = rounded<E4M3>(wanted > E4M3::kLargest ? E4M3::kLargest : wanted);
        const float block = near < kSmallestE4M3 ? kSmallestE4M3 : near;
        scale[b] = code_of<E4M3>(block);
        const float total = overall * block;
#pragma omp simd
        for (std::int64_t i = 0; i < kNvBlock; ++i) {
            codes[i] = e2m1_of(x_B[i] / total);
        }
        pack<kNvBlock>(codes, packed + b * kNvBlock / 2);
    }
}

// x: [rows, columns]; packed: [rows, columns / 2]; scale: [rows, columns / 32] e8m0.
void fp4_mx(const float* x, std::int64_t rows, std::int64_t columns, std::uint8_t* packed, std::uint8_t* scale) {
    const std::int64_t blocks = rows * columns / kMxBlock;
    std::uint8_t codes[kMxBlock];
    for (std::int64_t b = 0; b < blocks; ++b) {
        const float* x_B = x + b * kMxBlock;
        // The exponent of the largest magnitude as it is stored, with 127 added, which is what e8m0 stores too.
        const std::uint32_t exponent = static_cast<std::uint32_t>(largest_of(x_B, kMxBlock)) >> 23;
        const bool finite = exponent < 255u;
        const std::uint32_t stored = !finite ? kNanE8M0 : exponent < 2u ? 0u : exponent - 2u;
        scale[b] = static_cast<std::uint8_t>(stored);
        // 1 / scale, exactly: a power of two that float32 has as a normal number even where it has not the scale.
        const float inverse = finite ? float_of((254u - stored) << 23) : 0.0f;
#pragma omp simd
        for (std::int64_t i = 0; i < kMxBlock; ++i) {
            codes[i] = e2m1_of(x_B[i] * inverse);
        }
        pack<kMxBlock>(codes, packed + b * kMxBlock / 2);
    }
}

}  // extern "C"
