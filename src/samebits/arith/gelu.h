// GELU in its tanh form, written as a logistic function: x / (1 + exp(-2t)) with
// t = sqrt(2/pi) (x + 0.044715 x^3). In exact arithmetic that is x/2 (1 + tanh t); in fp32 the tanh
// form loses everything for negative x, where 1 + tanh t cancels, and this one does not.
//
// The order of the operations is the contract: u2 = (x x) x; t = c1 * fma(c2, u2, x);
// g = x / (1 + exp(-2t)). Every NaN is 0x7fffffff; gelu(-inf) is NaN (-inf / inf).
#pragma once

#include "samebits/arith/exp.h"
#include "samebits/arith/fp.h"

namespace sb::arith {

inline constexpr uint32_t kGeluK0Bits = 0x3f4c422au;  // 0.797884583, sqrt(2/pi)
inline constexpr uint32_t kGeluK1Bits = 0x3d372713u;  // 0.0447149985

SB_HD inline float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = bits_float(kGeluK0Bits);
  constexpr float kCubic = bits_float(kGeluK1Bits);
  const float u2 = mul(mul(x, x), x);
  const float t = mul(kSqrt2OverPi, fma(kCubic, u2, x));
  return canonical_result(div(x, add(1.0f, exp(mul(-2.0f, t)))));
}

}  // namespace sb::arith
