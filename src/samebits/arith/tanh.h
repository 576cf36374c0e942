// tanh(x) and the logit softcap in fp32. tanh: at most 0.96 ulp over all 2^32 inputs, odd to the
// bit, tanh(±0) = ±0, ±1 from |x| = 9.02 on, NaN = 0x7fffffff.
//
// |x| < 1: a polynomial, a + a^3 Q(a^2), which keeps the relative error near 0. |x| >= 1:
// 1 - 2 / (exp(2a) + 1), whose error is scaled down by 2 / (exp(2a) + 1) <= 0.24 there. Both are
// computed and one selected, so that a loop over it vectorises. Both work on a = |x|; the sign is
// put back as a bit. Coefficients: tools/fit_polynomials.py.
#pragma once

#include <cstdint>

#include "samebits/arith/exp.h"
#include "samebits/arith/fp.h"

namespace sb::arith {

SB_HD inline float tanh(float x) {
  const float a = abs_value(x);

  const float a2 = mul(a, a);
  float q = fma(-0x1.77dd52p-12f, a2, 0x1.2da504p-9f);
  q = fma(q, a2, -0x1.0460c8p-7f);
  q = fma(q, a2, 0x1.600994p-6f);
  q = fma(q, a2, -0x1.b96222p-5f);
  q = fma(q, a2, 0x1.110be2p-3f);
  q = fma(q, a2, -0x1.55553cp-2f);
  const float small = fma(mul(a, a2), q, a);

  // From 10 on the quotient no longer moves 1; the clamp keeps the exponent field in range.
  const detail::ScaledExp e = detail::scaled_exp(select(a > 10.0f, 20.0f, add(a, a)));
  const float power = bits_float(float_bits(e.p) + (e.n << 23));
  const float large = sub(1.0f, div(2.0f, add(power, 1.0f)));

  const float y = select(a < 1.0f, small, large);
  return select(a == a, xor_sign(y, x), bits_float(kCanonicalNan));
}

// cap * tanh(z / cap), with the IEEE quotient.
SB_HD inline float softcap(float z, float cap) { return mul(cap, tanh(div(z, cap))); }

// z / 30 without a division: a rounded reciprocal, one exact remainder, one correction. Equal to
// the IEEE quotient for 2^-123 <= |z| < inf (proven by running all inputs); below, the remainder is
// subnormal and loses bits.
SB_HD inline float div30_normal(float z) {
  constexpr float kReciprocal = 0x1.111112p-5f;  // RN(1/30)
  const float q = mul(z, kReciprocal);
  return fma(fma(-30.0f, q, z), kReciprocal, q);
}

// True where div30_normal may be used.
SB_HD constexpr bool div30_is_normal(float z) {
  return (float_bits(z) & 0x7fffffffu) - 0x02000000u < 0x7f800000u - 0x02000000u;
}

// z / 30, the same bits as div(z, 30).
SB_HD inline float div30(float z) { return div30_is_normal(z) ? div30_normal(z) : div(z, 30.0f); }

// softcap(z, 30), the same bits, for kernels that want no division.
SB_HD inline float softcap30(float z) { return mul(30.0f, tanh(div30(z))); }

}  // namespace sb::arith
