// log(x) in fp32 for every input: the fp32 nearest to the true value for all but five of the 2^32
// inputs, and those are 0.5 + 10^-9 ulp off (all run against MPFR). Used once a row (the log of a
// softmax sum), so it may work in double, where the method is good to about 2^-52.
//
// x = 2^n m, m in [sqrt(1/2), sqrt(2)); s = (m-1)/(m+1); log m = 2s + s^3 Q(s^2), Q of degree 7.
// The difference m - 1 is exact, so results near x = 1 keep their relative accuracy.
//
// log(±0) = -inf, log(x < 0) = log(NaN) = 0x7fffffff, log(+inf) = +inf; subnormal inputs are normal
// doubles and need no case. Coefficients: tools/fit_polynomials.py.
#pragma once

#include <cstdint>

#include "samebits/arith/fp.h"

namespace sb::arith {

SB_HD inline float log(float x) {
  const uint64_t u = double_bits(static_cast<double>(x));
  // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdull;
  const int64_t n = static_cast<int64_t>(u - kSqrtHalf) >> 52;
  const double m = bits_double(u - (static_cast<uint64_t>(n) << 52));

  const double s = div(sub(m, 1.0), add(m, 1.0));
  const double s2 = mul(s, s);
  double q = fma(0x1.0f60cc23837d9p-3, s2, 0x1.0f5d0ce5a793dp-3);
  q = fma(q, s2, 0x1.3b20a85a5ecddp-3);
  q = fma(q, s2, 0x1.745cde49bbcb9p-3);
  q = fma(q, s2, 0x1.c71c7258b85fbp-3);
  q = fma(q, s2, 0x1.249249242b811p-2);
  q = fma(q, s2, 0x1.9999999999dfbp-2);
  q = fma(q, s2, 0x1.5555555555555p-1);
  const double log_m = fma(mul(s, s2), q, add(s, s));
  const float y = static_cast<float>(fma(static_cast<double>(n), 0x1.62e42fefa39efp-1, log_m));

  const uint32_t b = float_bits(x);
  const float odd = bits_float((b << 1) == 0      ? 0xff800000u      // ±0
                               : b == 0x7f800000u ? b                // +inf
                                                  : kCanonicalNan);  // a NaN, or a sign bit
  return b - 1 < 0x7f800000u - 1 ? y : odd;
}

}  // namespace sb::arith
