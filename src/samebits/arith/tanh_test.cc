// tanh, the softcap with and without a division, and GELU.
#include "samebits/arith/tanh.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>

#include "samebits/arith/function_testing.h"
#include "samebits/arith/gelu.h"

namespace sb::arith {
namespace {

constexpr double kTanhUlp = 0.9593;
constexpr uint64_t kDivisionStride = 251;  // 17 million inputs

void apply_tanh(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = tanh(x[i]);
}
void apply_softcap(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = softcap(x[i], 30.0f);
}
void apply_gelu(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = gelu_tanh(x[i]);
}
double true_tanh(double x) { return std::tanh(x); }

// The same function without rounding: the constants are the contract's fp32 values.
double true_gelu(double x) {
  const double t = static_cast<double>(bits_float(0x3f4c422au)) *
                   (x + static_cast<double>(bits_float(0x3d372713u)) * x * x * x);
  return x / (1 + std::exp(-2 * t));
}

std::string digits(const char* format, float x) {
  char text[64];
  std::snprintf(text, sizeof text, format, static_cast<double>(x));
  return text;
}

TEST(Tanh, SpecialValues) {
  EXPECT_EQ(float_bits(tanh(0.0f)), 0u);
  EXPECT_EQ(float_bits(tanh(-0.0f)), 0x80000000u);
  for (uint32_t big : {0x7f800000u, 0x7f7fffffu, 0x41200000u, 0x41102cb4u}) {
    EXPECT_EQ(float_bits(tanh(bits_float(big))), 0x3f800000u) << std::hex << big;
    EXPECT_EQ(float_bits(tanh(bits_float(big | 0x80000000u))), 0xbf800000u) << std::hex << big;
  }
  for (uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    EXPECT_EQ(float_bits(tanh(bits_float(nan))), kCanonicalNan);
  }
  for (uint32_t tiny : {1u, 2u, 0x007fffffu, 0x00800000u, 0x38000000u}) {
    EXPECT_EQ(float_bits(tanh(bits_float(tiny))), tiny);
  }
}

TEST(Tanh, OddToTheBitAndAtMostOne) {
  for (uint64_t u = 0; u <= 0x7f800000u; u += kSampleStride) {
    const uint32_t plus = float_bits(tanh(bits_float(static_cast<uint32_t>(u))));
    const uint32_t minus = float_bits(tanh(bits_float(static_cast<uint32_t>(u) | 0x80000000u)));
    ASSERT_EQ(plus ^ 0x80000000u, minus) << std::hex << u;
    ASSERT_LE(plus, 0x3f800000u) << std::hex << u;
  }
}

TEST(Tanh, Sampled) {
  const Sweep s = sweep(apply_tanh, true_tanh, ulp_error, kSampleStride);
  EXPECT_LT(s.worst, kTanhUlp);
  expect_golden("tanh", "sampled", s);
}

TEST(Tanh, EveryInputFull) {
  const Sweep s = sweep(apply_tanh, true_tanh, ulp_error, 1);
  EXPECT_LT(s.worst, kTanhUlp);
  expect_golden("tanh", "all", s);
}

TEST(Softcap, PublishedDigits) {
  EXPECT_EQ(digits("%.5f", softcap(124, 30)), "29.98459");
  EXPECT_EQ(digits("%.4f", softcap(60, 30)), "28.9208");
  EXPECT_EQ(digits("%.5f", softcap(-124, 30)), "-29.98459");
  EXPECT_EQ(float_bits(softcap(-0.0f, 30)), 0x80000000u);
}

TEST(Softcap, Sampled) {
  expect_golden("softcap30", "sampled", sweep(apply_softcap, nullptr, nullptr, kSampleStride));
}

TEST(Softcap, EveryInputFull) {
  expect_golden("softcap30", "all", sweep(apply_softcap, nullptr, nullptr, 1));
}

// Number of inputs 0, stride, ... where a form without a division differs from the IEEE quotient.
int64_t division_differences(uint64_t stride) {
  constexpr uint64_t kBlock = 1 << 20;
  std::atomic<int64_t> different{0};
  parallel((int64_t{1} << 32) / static_cast<int64_t>(kBlock), [&](int64_t block) {
    const uint64_t first = static_cast<uint64_t>(block) * kBlock;
    int64_t count = 0;
    for (uint64_t u = (first + stride - 1) / stride * stride; u < first + kBlock; u += stride) {
      const float z = bits_float(static_cast<uint32_t>(u));
      const uint32_t want = float_bits(div(z, 30.0f));
      const bool nan = is_nan_bits(want);
      if (div30_is_normal(z)) count += float_bits(div30_normal(z)) != want;
      count += nan ? !is_nan_bits(float_bits(div30(z))) : float_bits(div30(z)) != want;
      count += float_bits(softcap30(z)) != float_bits(softcap(z, 30.0f));
    }
    different += count;
  });
  return different;
}

TEST(Softcap, QuotientWithoutDivisionSampled) {
  EXPECT_EQ(division_differences(kDivisionStride), 0);
}

TEST(Softcap, QuotientWithoutDivisionFull) { EXPECT_EQ(division_differences(1), 0); }

TEST(Softcap, RangeOfTheQuotientWithoutDivision) {
  EXPECT_TRUE(div30_is_normal(0x1p-123f));
  EXPECT_TRUE(div30_is_normal(-0x1.fffffep+127f));
  EXPECT_FALSE(div30_is_normal(bits_float(float_bits(0x1p-123f) - 1)));
  EXPECT_FALSE(div30_is_normal(0.0f));
  EXPECT_FALSE(div30_is_normal(bits_float(0x7f800000u)));
  EXPECT_FALSE(div30_is_normal(bits_float(kCanonicalNan)));
}

TEST(Gelu, KnownValues) {
  EXPECT_EQ(digits("%.6f", gelu_tanh(1)), "0.841192");
  EXPECT_EQ(digits("%.6f", gelu_tanh(-3)), "-0.003637");
  EXPECT_EQ(float_bits(gelu_tanh(0.0f)), 0u);
  EXPECT_EQ(float_bits(gelu_tanh(-0.0f)), 0x80000000u);
  EXPECT_EQ(float_bits(gelu_tanh(100.0f)), float_bits(100.0f));
  EXPECT_EQ(float_bits(gelu_tanh(-100.0f)), 0x80000000u);
  EXPECT_EQ(float_bits(gelu_tanh(bits_float(0x7f800000u))), 0x7f800000u);
  for (uint32_t nan : {0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7f800001u}) {
    EXPECT_EQ(float_bits(gelu_tanh(bits_float(nan))), kCanonicalNan);
  }
}

TEST(Gelu, AccurateForNegativeInputsToo) {
  const Sweep positive =
      sweep(apply_gelu, true_gelu, relative_error, kSampleStride, 0x00800000u, float_bits(20.0f));
  EXPECT_LT(positive.worst, 0x1p-21);
  // exp(-2t) magnifies the rounding of its argument: 2|t| <= 15 for x >= -4.
  const Sweep negative = sweep(apply_gelu, true_gelu, relative_error, kSampleStride,
                               float_bits(-0x1p-120f), float_bits(-4.0f));
  EXPECT_LT(negative.worst, 0x1p-19);
}

TEST(Gelu, Sampled) {
  expect_golden("gelu_tanh", "sampled", sweep(apply_gelu, nullptr, nullptr, kSampleStride));
}

TEST(Gelu, EveryInputFull) {
  expect_golden("gelu_tanh", "all", sweep(apply_gelu, nullptr, nullptr, 1));
}

}  // namespace
}  // namespace sb::arith
