// exp and E2: special values, accuracy, and the bits of every input.
#include "samebits/arith/exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "samebits/arith/exp2.h"
#include "samebits/arith/function_testing.h"

namespace sb::arith {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kExpUlp = 0.8943;
constexpr double kExp2Relative = 0x1p-18;

void apply_exp(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = exp(x[i]);
}
void apply_exp2(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = exp2_nonpos(x[i]);
}
double true_exp(double x) { return std::exp(x); }
double true_exp2(double x) { return x < -126 ? 0 : std::exp2(x); }

TEST(Exp, SpecialValues) {
  EXPECT_EQ(float_bits(exp(0.0f)), 0x3f800000u);
  EXPECT_EQ(float_bits(exp(-0.0f)), 0x3f800000u);
  EXPECT_EQ(float_bits(exp(-kInf)), 0u);
  EXPECT_EQ(float_bits(exp(kInf)), 0x7f800000u);
  for (uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    EXPECT_EQ(float_bits(exp(bits_float(nan))), kCanonicalNan);
  }
  EXPECT_EQ(float_bits(exp(bits_float(1))), 0x3f800000u);
}

TEST(Exp, OverflowAndUnderflowEdges) {
  EXPECT_EQ(float_bits(exp(0x1.62e42ep+6f)), 0x7f7fff84u);   // the last finite result
  EXPECT_EQ(float_bits(exp(0x1.62e430p+6f)), 0x7f800000u);   // the next input overflows
  EXPECT_EQ(float_bits(exp(-0x1.5d589ep+6f)), 0x00800026u);  // the last normal result
  EXPECT_EQ(float_bits(exp(-0x1.9d1d9ep+6f)), 0x00000001u);  // the smallest subnormal
  EXPECT_EQ(float_bits(exp(-104.0f)), 0u);
  EXPECT_EQ(float_bits(exp(-0x1.fffffep+127f)), 0u);
  EXPECT_EQ(float_bits(exp(0x1.fffffep+127f)), 0x7f800000u);
}

TEST(Exp, Sampled) {
  const Sweep s = sweep(apply_exp, true_exp, ulp_error, kSampleStride);
  EXPECT_LT(s.worst, kExpUlp);
  expect_golden("exp", "sampled", s);
}

TEST(Exp, EveryInputFull) {
  const Sweep s = sweep(apply_exp, true_exp, ulp_error, 1);
  EXPECT_LT(s.worst, kExpUlp);
  expect_golden("exp", "all", s);
}

TEST(Exp2Nonpos, SpecialValues) {
  EXPECT_EQ(float_bits(exp2_nonpos(0.0f)), 0x3f800000u);
  EXPECT_EQ(float_bits(exp2_nonpos(-0.0f)), 0x3f800000u);
  EXPECT_EQ(float_bits(exp2_nonpos(-kInf)), 0u);
  EXPECT_EQ(float_bits(exp2_nonpos(-0x1.fffffep+127f)), 0u);
  EXPECT_EQ(float_bits(exp2_nonpos(-0x1.f80002p+6f)), 0u);  // just below -126
  for (uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    EXPECT_EQ(float_bits(exp2_nonpos(bits_float(nan))), kCanonicalNan);
  }
}

TEST(Exp2Nonpos, WholeNumbersAreExact) {
  for (int n = 0; n <= 126; ++n) {
    EXPECT_EQ(float_bits(exp2_nonpos(static_cast<float>(-n))), static_cast<uint32_t>(127 - n)
                                                                   << 23);
  }
}

TEST(Exp2Nonpos, NeverAboveOneAndNeverSubnormal) {
  for (uint64_t u = 0x80000000u; u <= 0xff800000u; u += kSampleStride) {
    const uint32_t y = float_bits(exp2_nonpos(bits_float(static_cast<uint32_t>(u))));
    ASSERT_TRUE(y == 0 || (y >= 0x00800000u && y <= 0x3f800000u)) << std::hex << u;
  }
}

TEST(Exp2Nonpos, Sampled) {
  const Sweep s =
      sweep(apply_exp2, true_exp2, relative_error, kSampleStride, 0x80000000u, 0xffffffffu);
  EXPECT_LT(s.worst, kExp2Relative);
  expect_golden("exp2_nonpos", "sampled", s);
}

TEST(Exp2Nonpos, EveryInputFull) {
  const Sweep s = sweep(apply_exp2, true_exp2, relative_error, 1, 0x80000000u, 0xffffffffu);
  EXPECT_LT(s.worst, kExp2Relative);
  expect_golden("exp2_nonpos", "all", s);
}

}  // namespace
}  // namespace sb::arith
