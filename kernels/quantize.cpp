// Quantization to fp8, with a plain C interface for ctypes: scale = max|x| / largest, payload = round(x / scale).
//
// One thread, two passes: the largest magnitude, then division and rounding. x is float32. It is divided, not
// multiplied by 1 / scale, so that every bit is that of the reference. NaN and infinity get through: a group with a NaN
// has the scale NaN and one with an infinity the scale infinity, whose payload is NaN where x is infinite and 0
// elsewhere. The caller checks dtypes, sizes and strides: nothing here can.

#include <algorithm>
#include <cstdint>

#include "quantize_round.h"

namespace {

// Columns of a transposed matrix that are worked on together: their maxima stay in the first-level cache.
constexpr std::int64_t kTile = 256;

// The matrix is stored by columns: element (r, c) is x[c * rows + r], and so is its payload.
template <typename Format, typename Payload>
void quantize_transposed(const float* __restrict__ x, std::int64_t rows, std::int64_t columns, std::int64_t group,
                         Payload* __restrict__ payload, float* __restrict__ scale) {
    const std::int64_t groups = (columns + group - 1) / group;
    std::int32_t largest[kTile];
    float scales[kTile];
    for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t stop = std::min(columns, (g + 1) * group);
        for (std::int64_t row = 0; row < rows; row += kTile) {
            const std::int64_t width = std::min(kTile, rows - row);
            std::fill_n(largest, width, 0);
            for (std::int64_t c = g * group; c < stop; ++c) {
                const float* from = x + c * rows + row;
#pragma omp simd
                for (std::int64_t r = 0; r < width; ++r) {
                    largest[r] = std::max(largest[r], magnitude_of(from[r]));
                }
            }
            for (std::int64_t r = 0; r < width; ++r) {
                scales[r] = scale_of<Format>(largest[r]);
                scale[(row + r) * groups + g] = scales[r];
            }
            for (std::int64_t c = g * group; c < stop; ++c) {
                const std::int64_t at = c * rows + row;
#pragma omp simd
                for (std::int64_t r = 0; r < width; ++r) {
                    payload[at + r] = payload_of<Format, Payload>(x[at + r] / scales[r]);
                }
            }
        }
    }
}

template <typename Format, typename Payload>
void quantize(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t group, std::int64_t transposed,
              void* to, float* scale) {
    Payload* payload = static_cast<Payload*>(to);
    if (group == 0) {
        const std::int64_t count = rows * columns;
        *scale = scale_of<Format>(largest_of(x, count));
        divide_and_round<Format>(x, count, *scale, payload);
    } else if (transposed != 0) {
        quantize_transposed<Format>(x, rows, columns, group, payload, scale);
    } else {
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; c += group) {
                const std::int64_t at = r * columns + c;
                const std::int64_t width = std::min(group, columns - c);
                *scale = scale_of<Format>(largest_of(x + at, width));
                divide_and_round<Format>(x + at, width, *scale++, payload + at);
            }
        }
    }
}

}  // namespace

// x: [rows, columns], stored by rows, or by columns where `transposed`; payload the same. group: columns that share a
// scale, 0 where the whole matrix does. scale: one, or [rows, ceil(columns / group)] stored by rows.
#define DEFINE(NAME, FORMAT, PAYLOAD)                                                                              \
    extern "C" void NAME(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t group,              \
                         std::int64_t transposed, void* payload, float* scale) {                                   \
        quantize<FORMAT, PAYLOAD>(x, rows, columns, group, transposed, payload, scale);                            \
    }
DEFINE(quantize_e4m3, E4M3, std::uint8_t)
DEFINE(quantize_e5m2, E5M2, std::uint8_t)
DEFINE(quantize_e4m3_emulated, E4M3, float)
DEFINE(quantize_e5m2_emulated, E5M2, float)
