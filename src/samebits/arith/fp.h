// The only floating-point operations of the portable arithmetic: fma, add, sub, mul, div, sqrt,
// each rounded once to nearest even with subnormals kept, and comparisons. Everything else is
// integer work on bit patterns. On nvcc the _rn intrinsics are used because the compiler never
// contracts them; elsewhere the flags (-ffp-contract=off) keep a product and a sum apart.
//
// Names hide the C library's on purpose: inside sb::arith an unqualified exp or fma is ours.
#pragma once

#include <cstdint>

#include "samebits/base/bits.h"
#include "samebits/base/platform.h"

namespace sb::arith {

#if defined(__CUDA_ARCH__)
SB_HD inline float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SB_HD inline float add(float a, float b) { return __fadd_rn(a, b); }
SB_HD inline float sub(float a, float b) { return __fsub_rn(a, b); }
SB_HD inline float mul(float a, float b) { return __fmul_rn(a, b); }
SB_HD inline float div(float a, float b) { return __fdiv_rn(a, b); }
SB_HD inline float sqrt(float a) { return __fsqrt_rn(a); }
SB_HD inline double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
SB_HD inline double add(double a, double b) { return __dadd_rn(a, b); }
SB_HD inline double sub(double a, double b) { return __dsub_rn(a, b); }
SB_HD inline double mul(double a, double b) { return __dmul_rn(a, b); }
SB_HD inline double div(double a, double b) { return __ddiv_rn(a, b); }
#else
SB_HD inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SB_HD inline float add(float a, float b) { return a + b; }
SB_HD inline float sub(float a, float b) { return a - b; }
SB_HD inline float mul(float a, float b) { return a * b; }
SB_HD inline float div(float a, float b) { return a / b; }
SB_HD inline float sqrt(float a) { return __builtin_sqrtf(a); }
SB_HD inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
SB_HD inline double add(double a, double b) { return a + b; }
SB_HD inline double sub(double a, double b) { return a - b; }
SB_HD inline double mul(double a, double b) { return a * b; }
SB_HD inline double div(double a, double b) { return a / b; }
#endif

// max of the contracts. Not fmaxf: its answer for ±0 and NaN depends on the platform.
SB_HD constexpr float select_max(float a, float b) { return a < b ? b : a; }

SB_HD constexpr float abs_value(float x) { return bits_float(float_bits(x) & 0x7fffffffu); }

// x with its sign bit xor-ed with that of s.
SB_HD constexpr float xor_sign(float x, float s) {
  return bits_float(float_bits(x) ^ (float_bits(s) & 0x80000000u));
}

// c ? a : b on bits. On the CPU a mask, because g++ would turn the conditional operator into a
// branch around the arithmetic that makes a or b (it may trap), and no loop with a branch
// vectorises.
SB_HD inline float select(bool c, float a, float b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return c ? a : b;
#else
  const uint32_t mask = 0u - static_cast<uint32_t>(c);
  return bits_float((float_bits(a) & mask) | (float_bits(b) & ~mask));
#endif
}

// Result of an arithmetic operation with every NaN made 0x7fffffff. x86 and AMD hand on the payload
// of an operand, so they need the select; NVIDIA's arithmetic returns that pattern by itself.
SB_HD inline float canonical_result(float x) {
#if defined(__CUDA_ARCH__)
  return x;
#else
  return select(x == x, x, bits_float(kCanonicalNan));
#endif
}

}  // namespace sb::arith
