// Residual add + RMSNorm in float32, forward and backward, with a plain C interface for ctypes.
//
//   h = x + r,   s = 1 / sqrt(mean(h^2) + eps),   y = h * s * w
//
// One thread. A row is read into cache once and both passes over it run from there. Sums over a row are reordered
// into vector lanes only where `omp simd` says so; the rest keeps IEEE semantics, so NaN and infinity get through.
// The caller checks dtypes, sizes and contiguity: nothing here can.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// Rows summed into one float32 partial before it is added to the total: the rounding error of the weight gradient
// then grows with rows / 64 + 64 instead of with rows.
constexpr std::int64_t kRowsPerPartial = 64;

float scale_of(float squares, std::int64_t width, float eps) {
    return 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
}

template <bool kHasGradH>
void backward_row(const float* __restrict__ grad_y, const float* __restrict__ grad_h, const float* __restrict__ h,
                  const float* __restrict__ weight, float eps, std::int64_t width, float* __restrict__ grad_input,
                  float* __restrict__ partial) {
    // The squares are summed again: they ride along with `dot`, for less than it takes to keep s for this pass.
    float dot = 0.0f;
    float squares = 0.0f;
#pragma omp simd reduction(+ : dot, squares)
    for (std::int64_t d = 0; d < width; ++d) {
        dot += grad_y[d] * weight[d] * h[d];
        squares += h[d] * h[d];
    }
    const float scale = scale_of(squares, width, eps);
    // The derivative of s with respect to h[d] is -s^3 h[d] / width.
    const float pull = dot * scale * scale / static_cast<float>(width);
#pragma omp simd
    for (std::int64_t d = 0; d < width; ++d) {
        const float through_norm = scale * (grad_y[d] * weight[d] - h[d] * pull);
        grad_input[d] = kHasGradH ? through_norm + grad_h[d] : through_norm;
        partial[d] += grad_y[d] * (h[d] * scale);
    }
}

}  // namespace

extern "C" {

// x, residual, y, h: [rows, width]; weight: [width].
void prenorm_forward_f32(const float* __restrict__ x, const float* __restrict__ residual,
                         const float* __restrict__ weight, float eps, std::int64_t rows, std::int64_t width,
                         float* __restrict__ y, float* __restrict__ h) {
    for (std::int64_t n = 0; n < rows; ++n) {
        const float* x_D = x + n * width;
        const float* residual_D = residual + n * width;
        float* y_D = y + n * width;
        float* h_D = h + n * width;
        float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
        for (std::int64_t d = 0; d < width; ++d) {
            const float sum = x_D[d] + residual_D[d];
            h_D[d] = sum;
            squares += sum * sum;
        }
        const float scale = scale_of(squares, width, eps);
#pragma omp simd
        for (std::int64_t d = 0; d < width; ++d) {
            y_D[d] = h_D[d] * scale * weight[d];
        }
    }
}

// grad_y, h, grad_input: [rows, width]; grad_h: the same or null, which stands for zeros; weight, grad_weight: [width].
void prenorm_backward_f32(const float* __restrict__ grad_y, const float* __restrict__ grad_h,
                          const float* __restrict__ h, const float* __restrict__ weight, float eps, std::int64_t rows,
                          std::int64_t width, float* __restrict__ grad_input, float* __restrict__ grad_weight) {
    std::vector<float> partial_D(static_cast<std::size_t>(width));
    float* partial = partial_D.data();
    std::fill_n(grad_weight, width, 0.0f);
    for (std::int64_t start = 0; start < rows; start += kRowsPerPartial) {
        const std::int64_t stop = start + kRowsPerPartial < rows ? start + kRowsPerPartial : rows;
        std::fill_n(partial, width, 0.0f);
        for (std::int64_t n = start; n < stop; ++n) {
            const std::int64_t at = n * width;
            if (grad_h != nullptr) {
                backward_row<true>(grad_y + at, grad_h + at, h + at, weight, eps, width, grad_input + at, partial);
            } else {
                backward_row<false>(grad_y + at, nullptr, h + at, weight, eps, width, grad_input + at, partial);
            }
        }
#pragma omp simd
        for (std::int64_t d = 0; d < width; ++d) {
            grad_weight[d] += partial[d];
        }
    }
}

}  // extern "C"
