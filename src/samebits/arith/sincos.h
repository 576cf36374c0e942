// Sine and cosine of an fp32 angle for the RoPE tables, computed in double and rounded once to
// fp32. Domain |angle| < 2^20 (a position of one million at frequency 1); beyond it, and for NaN,
// both results are 0x7fffffff. Over all angles of the domain one result is not the fp32 nearest to
// the true value (a run of all of them against MPFR); the declared bits are what this code gives.
//
// Reduction: k = round(x 2/pi) by 1.5 * 2^52, r = ((x - k P1) - k P2) - k P3 by fma, where
// P1 + P2 + P3 = pi/2 to 119 bits and the first two parts have 33 bits, so that k P1 and k P2 are
// exact and the first difference too. An fp32 angle below 2^20 is never nearer than about 2^-32 to
// a non-zero multiple of pi/2, so r keeps full relative accuracy. Then odd and even polynomials on
// |r| <= pi/4. Coefficients: tools/fit_polynomials.py.
#pragma once

#include <cstdint>

#include "samebits/arith/fp.h"

namespace sb::arith {

SB_HD inline void sincos(float angle, float& sine, float& cosine) {
  constexpr double kMagic = 0x1.8p+52;
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kP1 = 0x1.921fb544p+0, kP2 = 0x1.0b4611a6p-34, kP3 = 0x1.3198a2e037073p-69;
  const double x = static_cast<double>(abs_value(angle));
  const double shifted = fma(x, kTwoOverPi, kMagic);
  const double k = sub(shifted, kMagic);
  const uint32_t quadrant = static_cast<uint32_t>(double_bits(shifted)) & 3u;
  double r = fma(-k, kP1, x);
  r = fma(-k, kP2, r);
  r = fma(-k, kP3, r);
  const double r2 = mul(r, r);

  double a = fma(0x1.5d8fa3517c1bep-33, r2, -0x1.ae5e59f649844p-26);
  a = fma(a, r2, 0x1.71de3567134dcp-19);
  a = fma(a, r2, -0x1.a01a019bfd193p-13);
  a = fma(a, r2, 0x1.111111110f7cap-7);
  a = fma(a, r2, -0x1.5555555555548p-3);
  const double s = fma(mul(r, r2), a, r);

  double b = fma(-0x1.8fa46618aca8cp-37, r2, 0x1.1ee9d752e4348p-29);
  b = fma(b, r2, -0x1.27e4f7ea38124p-22);
  b = fma(b, r2, 0x1.a01a019c8391ap-16);
  b = fma(b, r2, -0x1.6c16c16c14f8ap-10);
  b = fma(b, r2, 0x1.555555555554bp-5);
  // 1 - r^2/2 first: both are at most 1, and the small rest is added to its rounding error too.
  const double half = mul(0.5, r2);
  const double head = sub(1.0, half);
  const double rest = sub(sub(1.0, head), half);
  const double c = add(head, fma(mul(r2, r2), b, rest));

  const bool odd = (quadrant & 1u) != 0;
  const float y_sin = static_cast<float>(odd ? c : s), y_cos = static_cast<float>(odd ? s : c);
  // Quadrants 2 and 3 negate the sine, 1 and 2 the cosine; the angle's own sign negates the sine.
  const uint32_t sign_sin = (float_bits(angle) & 0x80000000u) ^ (quadrant >> 1 << 31);
  const uint32_t sign_cos = (quadrant ^ (quadrant >> 1)) << 31;
  const bool inside = abs_value(angle) < 0x1p20f;
  sine = bits_float(inside ? float_bits(y_sin) ^ sign_sin : kCanonicalNan);
  cosine = bits_float(inside ? float_bits(y_cos) ^ sign_cos : kCanonicalNan);
}

}  // namespace sb::arith
