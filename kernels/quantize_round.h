// Scales and rounding to fp8, for quantize.cpp and gated.cpp: scale = max|x| / largest, payload = round(x / scale).
//
// x is divided, not multiplied by 1 / scale, so that every bit is that of the reference. NaN and infinity get through.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace {

constexpr float kSmallestScale = 1e-12f;
constexpr std::uint32_t kMagnitude = 0x7FFFFFFFu;
constexpr std::uint32_t kExponent = 0x7F800000u;
struct E4M3 {
    static constexpr int kMantissaBits = 3;
    static constexpr int kBias = 7;
    static constexpr float kSmallestNormal = 0x1p-6f;
    static constexpr float kLargest = 448.0f;
};

struct E5M2 {
    static constexpr int kMantissaBits = 2;
    static constexpr int kBias = 15;
    static constexpr float kSmallestNormal = 0x1p-14f;
    static constexpr float kLargest = 57344.0f;
};

inline std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// As integers, magnitudes sort as their values do, with infinity and then NaN on top: so NaN wins a maximum.
inline std::int32_t magnitude_of(float value) { return static_cast<std::int32_t>(bits_of(value) & kMagnitude); }

inline std::int32_t largest_of(const float* __restrict__ x, std::int64_t count) {
    std::int32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, magnitude_of(x[i]));
    }
    return largest;
}

template <typename Format>
inline float scale_of(std::int32_t largest) {
    const float scale = float_of(static_cast<std::uint32_t>(largest)) / Format::kLargest;
    return scale < kSmallestScale ? kSmallestScale : scale;
}

// To the nearest value of the format, ties to even. A multiple of q is found by adding and taking away
// c = 1.5 * 2^23 * q, beside which float32 steps by q; q is the format's step at `value`.
template <typename Format>
inline float rounded(float value) {
    constexpr float kBeside = 1.5f * static_cast<float>(1 << (23 - Format::kMantissaBits));
    const float power = float_of(bits_of(value) & kExponent);
    const float c = (power < Format::kSmallestNormal ? Format::kSmallestNormal : power) * kBeside;
    return (value + c) - c;
}

// The byte of the format. A subnormal is moved to the first normal binade, where its mantissa lies as the others do.
// With masks in place of conditions, which would keep the loop from being vectorised.
template <typename Format>
inline std::uint8_t code_of(float value) {
    constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - Format::kBias) << Format::kMantissaBits;
    const float magnitude = rounded<Format>(float_of(bits_of(value) & kMagnitude));
    const std::uint32_t subnormal = magnitude < Format::kSmallestNormal;
    const float moved = magnitude + float_of(bits_of(Format::kSmallestNormal) & (0u - subnormal));
    const std::uint32_t code =
        (bits_of(moved) >> (23 - Format::kMantissaBits)) - kRebias - (subnormal << Format::kMantissaBits);
    const std::uint32_t nan = bits_of(magnitude) > kExponent;
    return static_cast<std::uint8_t>((code & 0x7Fu) | (0x7Fu & (0u - nan)) | ((bits_of(value) >> 24) & 0x80u));
}

template <typename Format, typename Payload>
inline Payload payload_of(float value) {
    if constexpr (std::is_same_v<Payload, float>) {
        return rounded<Format>(value);
    } else {
        return code_of<Format>(value);
    }
}

// x and payload may be the same array.
template <typename Format, typename Payload>
inline void divide_and_round(const float* x, std::int64_t count, float scale, Payload* payload) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        payload[i] = payload_of<Format, Payload>(x[i] / scale);
    }
}

}  // namespace
