// log: special values and, for every input, the distance to the nearest result.
#include "samebits/arith/log.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "samebits/arith/function_testing.h"

namespace sb::arith {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

void apply_log(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = log(x[i]);
}
double true_log(double x) { return x < 0 ? std::nan("") : std::log(x); }

float mpfr_log(float x) {
  mpfr_t v;
  mpfr_init2(v, 200);
  mpfr_set_flt(v, x, MPFR_RNDN);
  mpfr_log(v, v, MPFR_RNDN);
  const float y = mpfr_get_flt(v, MPFR_RNDN);
  mpfr_clear(v);
  mpfr_free_cache();  // it is one per thread, and threads end
  return y;
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(float_bits(log(0.0f)), 0xff800000u);
  EXPECT_EQ(float_bits(log(-0.0f)), 0xff800000u);
  EXPECT_EQ(float_bits(log(kInf)), 0x7f800000u);
  EXPECT_EQ(float_bits(log(1.0f)), 0u);
  for (uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7f800001u, 0xff800000u, 0xbf800000u,
                       0x80000001u}) {
    EXPECT_EQ(float_bits(log(bits_float(nan))), kCanonicalNan) << std::hex << nan;
  }
}

TEST(Log, SubnormalsAndTheNeighboursOfOne) {
  for (uint32_t u : {1u, 2u, 3u, 0x007fffffu, 0x00800000u, 0x3f7fffffu, 0x3f800001u, 0x3f3504f3u,
                     0x3f3504f4u, 0x3fb504f3u, 0x3fb504f4u, 0x7f7fffffu}) {
    EXPECT_EQ(float_bits(log(bits_float(u))), float_bits(mpfr_log(bits_float(u)))) << std::hex << u;
  }
}

TEST(Log, Sampled) {
  const Sweep s = sweep(apply_log, true_log, ulp_error, kSampleStride);
  EXPECT_LT(s.worst, 0.5 + 1e-6);
  expect_golden("log", "sampled", s);
}

TEST(Log, EveryInputFull) {
  const Sweep s = sweep(apply_log, true_log, ulp_error, 1);
  EXPECT_LT(s.worst, 0.5 + 1e-6);
  expect_golden("log", "all", s);
}

// The double reference cannot decide a result that lies within its own error of the middle between
// two floats; MPFR decides those.
TEST(Log, NearestButForFiveInputsFull) {
  std::atomic<int64_t> asked{0}, wrong{0};
  parallel(0x7f8, [&](int64_t block) {
    for (uint32_t i = 0; i < 0x100000u; ++i) {
      const float x = bits_float(static_cast<uint32_t>(block) * 0x100000u + i);
      const float y = log(x);
      const double error = ulp_error(y, true_log(static_cast<double>(x)));
      if (error < 0.5 - 1e-6) continue;
      ++asked;
      wrong += float_bits(y) != float_bits(mpfr_log(x));
    }
  });
  EXPECT_GT(asked, 0);
  EXPECT_EQ(wrong, 5);
}

}  // namespace
}  // namespace sb::arith
