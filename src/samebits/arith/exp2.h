// E2(t) = 2^t for t <= 0: the exponential of attention and of nothing else. 11 instructions where
// exp needs 24, and a kernel evaluates one per score. Relative error at most 2^-18.4 (contract:
// 2^-17).
//
// t = n + f, |f| <= 1/2, by adding 1.5 * 2^23; 2^f = 1 + f Q(f) with Q of degree 3, so that f = 0
// gives exactly 1 and a row maximum weighs exactly 1. 2^n is built in the exponent field; below
// -126 the result is +0, so no subnormal ever appears and the scale needs no second half. Scaling
// by a product instead of an integer addition to the exponent costs one instruction and hands NaN
// on: an integer addition would turn a NaN score into a large finite weight, and differently per
// platform.
//
// E2(±0) = 1, E2(-inf) = +0, E2(NaN) = 0x7fffffff. t > 0 is outside the domain (though right up to
// 127); nothing checks it. Coefficients: tools/fit_polynomials.py.
#pragma once

#include <cstdint>

#include "samebits/arith/exp.h"
#include "samebits/arith/fp.h"

namespace sb::arith {

SB_HD inline float exp2_nonpos(float t) {
  const float shifted = add(t, kRoundMagic);
  const float f = sub(t, sub(shifted, kRoundMagic));
  float p = fma(0x1.3a02cap-7f, f, 0x1.c9fc44p-5f);
  p = fma(p, f, 0x1.ec0378p-3f);
  p = fma(p, f, 0x1.62e12cp-1f);
  p = fma(p, f, 1.0f);
  // The magic number's own low bits are 0, so the shift leaves n alone in the exponent field.
  const float scaled = mul(p, bits_float((float_bits(shifted) << 23) + 0x3f800000u));
  return select(t < -126.0f, 0.0f, canonical_result(scaled));
}

}  // namespace sb::arith
