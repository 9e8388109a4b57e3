// The gated activation y = silu(gate) * up, written quantized, and its backward pass; plain C interface for ctypes.
//
// One thread. y and its largest magnitude are made in one pass over gate and up, and y is rounded from cache: where a
// row or block has a scale of its own at once, else after the last row. gate and up are float32 with columns beside
// each other and any distance between rows. The caller checks dtypes, sizes and strides: nothing here can.

#include <algorithm>
#include <cstdint>

#include "quantize_round.h"

namespace {

// e^x = 2^n e^r with n the integer nearest to x / ln 2, and a polynomial for e^r on |r| <= ln(2) / 2 (the coefficients
// are those of Moshier's Cephes library). Within 1.1 ulp; 0 below -87.6, infinity above 88.3, NaN for NaN.
inline float exponential(float x) {
    constexpr float kRound = 0x1.8p23f;  // Beside it float32 steps by 1, so a sum's last bits are an integer.
    constexpr float kInverse = 1.44269504088896341f;
    constexpr float kHigh = 0.693359375f;  // ln 2 in two parts, the first short enough for n * kHigh to be exact.
    constexpr float kLow = -2.12194440e-4f;
    const float above = x > 88.5f ? 88.5f : x;
    const float inside = above < -88.0f ? -88.0f : above;
    const float shifted = inside * kInverse + kRound;
    const float n = shifted - kRound;
    const float r = inside - n * kHigh - n * kLow;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    // n is at least -127 and at most 128, whose powers are written as 0 and infinity.
    const float power = float_of((bits_of(shifted) - bits_of(kRound) + 127u) << 23);
    return (p * (r * r) + r + 1.0f) * power;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// y of one run of columns; gives back the largest magnitude, as an integer (see magnitude_of).
inline std::int32_t product(const float* __restrict__ gate, const float* __restrict__ up, std::int64_t count,
                            float* __restrict__ y) {
    std::int32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        const float value = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
        y[i] = value;
        largest = std::max(largest, magnitude_of(value));
    }
    return largest;
}

template <typename Format, typename Payload>
void gated(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride, std::int64_t rows,
           std::int64_t columns, std::int64_t group, float* scratch, void* to, float* scale) {
    constexpr bool kInPlace = std::is_same_v<Payload, float>;
    Payload* payload = static_cast<Payload*>(to);
    if (group == 0) {
        float* y = kInPlace ? static_cast<float*>(to) : scratch;
        std::int32_t largest = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            largest = std::max(largest, product(gate + r * gate_stride, up + r * up_stride, columns, y + r * columns));
        }
        *scale = scale_of<Format>(largest);
        divide_and_round<Format>(y, rows * columns, *scale, payload);
        return;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; c += group) {
            const std::int64_t at = r * columns + c;
            const std::int64_t width = std::min(group, columns - c);
            float* y = kInPlace ? static_cast<float*>(to) + at : scratch;
            *scale = scale_of<Format>(product(gate + r * gate_stride + c, up + r * up_stride + c, width, y));
            divide_and_round<Format>(y, width, *scale++, payload + at);
        }
    }
}

}  // namespace

// gate, up: [rows, columns], rows gate_stride and up_stride elements apart. payload: [rows, columns], stored by rows.
// group: columns that share a scale, 0 where the whole matrix does. scale: one, or [rows, ceil(columns / group)].
// scratch: what shares a scale, in float32; null where the payload is float32, which then serves.
#define DEFINE(NAME, FORMAT, PAYLOAD)                                                                               \
    extern "C" void NAME(const float* gate, std::int64_t gate_stride, const float* up, std::int64_t up_stride,      \
                         std::int64_t rows, std::int64_t columns, std::int64_t group, float* scratch, void* payload, \
                         float* scale) {                                                                            \
        gated<FORMAT, PAYLOAD>(gate, gate_stride, up, up_stride, rows, columns, group, scratch, payload, scale);    \
    }
DEFINE(gated_quantize_e4m3, E4M3, std::uint8_t)
DEFINE(gated_quantize_e5m2, E5M2, std::uint8_t)
DEFINE(gated_quantize_e4m3_emulated, E4M3, float)
DEFINE(gated_quantize_e5m2_emulated, E5M2, float)

// dy, gate, up as above; grad_gate, grad_up: [rows, columns], stored by rows. With s = sigmoid(gate):
// grad_gate = dy * up * s * (1 + gate * (1 - s)), grad_up = dy * gate * s.
extern "C" void gated_backward_f32(const float* __restrict__ dy, std::int64_t dy_stride,
                                   const float* __restrict__ gate, std::int64_t gate_stride,
                                   const float* __restrict__ up, std::int64_t up_stride, std::int64_t rows,
                                   std::int64_t columns, float* __restrict__ grad_gate, float* __restrict__ grad_up) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* dy_C = dy + r * dy_stride;
        const float* gate_C = gate + r * gate_stride;
        const float* up_C = up + r * up_stride;
        float* grad_gate_C = grad_gate + r * columns;
        float* grad_up_C = grad_up + r * columns;
#pragma omp simd
        for (std::int64_t c = 0; c < columns; ++c) {
            const float s = sigmoid(gate_C[c]);
            grad_gate_C[c] = dy_C[c] * up_C[c] * (s * (1.0f + gate_C[c] * (1.0f - s)));
            grad_up_C[c] = dy_C[c] * (gate_C[c] * s);
        }
    }
}
