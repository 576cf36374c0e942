// exp(x) in fp32 for every input, the same bits on every platform. At most 0.895 ulp from the true
// value over all 2^32 inputs, subnormal results included.
//
// x = n ln2 + r, |r| <= ln2/2 (Cody and Waite 1980: ln2 in two parts, the first so short that n
// times it is exact), exp(r) = 1 + r (1 + r Q(r)) with Q of degree 4, then times 2^n. n comes from
// adding 1.5 * 2^23, which rounds to an integer and leaves it in the low mantissa bits: no rint,
// whose lowering differs by platform. 2^n is applied in two halves, since n reaches beyond the
// exponents of fp32 at both ends; the last product then rounds into the subnormals or overflows as
// IEEE says.
//
// exp(±0) = 1, exp(-inf) = +0, exp(+inf) = +inf, exp(NaN) = 0x7fffffff.
// Coefficients: tools/fit_polynomials.py.
#pragma once

#include <cstdint>

#include "samebits/arith/fp.h"

namespace sb::arith {

inline constexpr float kLog2e = 0x1.715476p+0f;
inline constexpr float kRoundMagic = 0x1.8p+23f;  // x + this - this: x to the nearest integer

namespace detail {

// exp(x) = p * 2^n, p in [0.70, 1.42], for |x| < 2^20.
struct ScaledExp {
  float p;
  uint32_t n;  // two's complement
};

SB_HD inline ScaledExp scaled_exp(float x) {
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  const float shifted = fma(x, kLog2e, kRoundMagic);
  const float n = sub(shifted, kRoundMagic);
  float r = fma(-n, kLn2High, x);
  r = fma(-n, kLn2Low, r);
  float q = fma(0x1.6a2434p-10f, r, 0x1.1239e2p-7f);
  q = fma(q, r, 0x1.5558f2p-5f);
  q = fma(q, r, 0x1.555492p-3f);
  q = fma(q, r, 0x1.fffffcp-2f);
  q = fma(q, r, 1.0f);
  const float p = fma(q, r, 1.0f);
  return {p, float_bits(shifted) - float_bits(kRoundMagic)};
}

}  // namespace detail

SB_HD inline float exp(float x) {
  // Beyond these the result is +0 or +inf; the clamp keeps n small. NaN passes both.
  float t = select(x < -104.0f, -104.0f, x);
  t = select(t > 89.0f, 89.0f, t);
  const detail::ScaledExp e = detail::scaled_exp(t);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(e.n) >> 1);
  const float scale_a = bits_float((half << 23) + 0x3f800000u);
  const float scale_b = bits_float(((e.n - half) << 23) + 0x3f800000u);
  return canonical_result(mul(mul(e.p, scale_a), scale_b));
}

}  // namespace sb::arith
