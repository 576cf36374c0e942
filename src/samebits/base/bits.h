// Bit casts and integer helpers that are the same on host and device.
#pragma once

#include <cstdint>

#include "samebits/base/platform.h"

namespace sb {

SB_HD constexpr uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
SB_HD constexpr float bits_float(uint32_t b) { return __builtin_bit_cast(float, b); }
SB_HD constexpr uint64_t double_bits(double x) { return __builtin_bit_cast(uint64_t, x); }
SB_HD constexpr double bits_double(uint64_t b) { return __builtin_bit_cast(double, b); }

inline constexpr uint32_t kCanonicalNan = 0x7fffffffu;  // what a Hopper matrix step returns

SB_HD constexpr bool is_finite_bits(uint32_t b) { return (b & 0x7f800000u) != 0x7f800000u; }
SB_HD constexpr bool is_nan_bits(uint32_t b) { return (b & 0x7fffffffu) > 0x7f800000u; }

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace sb
