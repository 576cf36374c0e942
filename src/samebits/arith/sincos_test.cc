// sincos: symmetry, domain, and correct rounding against MPFR at random and at RoPE-like angles.
#include "samebits/arith/sincos.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <atomic>
#include <cmath>
#include <cstdio>

#include "samebits/arith/function_testing.h"
#include "samebits/base/digest.h"
#include "samebits/base/rng.h"

namespace sb::arith {
namespace {

constexpr uint32_t kDomainEnd = 0x49800000u;  // 2^20

struct Pair {
  float sine, cosine;
};

Pair mpfr_pair(float x) {
  mpfr_t s, c;
  mpfr_init2(s, 160);
  mpfr_init2(c, 160);
  mpfr_set_flt(s, x, MPFR_RNDN);
  mpfr_sin_cos(s, c, s, MPFR_RNDN);
  const Pair p{mpfr_get_flt(s, MPFR_RNDN), mpfr_get_flt(c, MPFR_RNDN)};
  mpfr_clear(s);
  mpfr_clear(c);
  mpfr_free_cache();  // it is one per thread, and threads end
  return p;
}

// Number of wrong results at x. The C library's double settles all but one in 2^20; it is good to
// about 2^-52, so a result further than that from a rounding boundary is certain.
int wrong_at(float x) {
  float s = 0, c = 0;
  sincos(x, s, c);
  constexpr double kSure = 0.5 - 1e-6;
  if (ulp_error(s, std::sin(static_cast<double>(x))) < kSure &&
      ulp_error(c, std::cos(static_cast<double>(x))) < kSure) {
    return 0;
  }
  const Pair want = mpfr_pair(x);
  return (float_bits(s) != float_bits(want.sine)) + (float_bits(c) != float_bits(want.cosine));
}

void apply_sin(const float* x, float* y, int n) {
  float c;
  for (int i = 0; i < n; ++i) sincos(x[i], y[i], c);
}
void apply_cos(const float* x, float* y, int n) {
  float s;
  for (int i = 0; i < n; ++i) sincos(x[i], s, y[i]);
}

// Frequencies like those of a RoPE with `pairs` rotated pairs out of `dim` dimensions.
float frequency(double theta, int i, int dim) {
  return static_cast<float>(std::pow(theta, -2.0 * i / dim));
}

int64_t wrong_rope_angles(int position_stride) {
  struct Rope {
    double theta;
    int dim, pairs;
  };
  std::atomic<int64_t> wrong{0};
  for (const Rope rope : {Rope{1e4, 256, 128}, Rope{1e6, 512, 64}}) {
    parallel(rope.pairs, [&](int64_t i) {
      const float f = frequency(rope.theta, static_cast<int>(i), rope.dim);
      for (int p = 0; p < 262144; p += position_stride) {
        wrong += wrong_at(mul(f, static_cast<float>(p)));
      }
    });
  }
  return wrong;
}

TEST(SinCos, SpecialValues) {
  float s = 1, c = 0;
  sincos(0.0f, s, c);
  EXPECT_EQ(float_bits(s), 0u);
  EXPECT_EQ(float_bits(c), 0x3f800000u);
  sincos(-0.0f, s, c);
  EXPECT_EQ(float_bits(s), 0x80000000u);
  EXPECT_EQ(float_bits(c), 0x3f800000u);
  for (uint32_t u : {kDomainEnd, 0x7f800000u, 0x7fc00000u, 0x7f7fffffu}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      sincos(bits_float(u | sign), s, c);
      EXPECT_EQ(float_bits(s), kCanonicalNan) << std::hex << u;
      EXPECT_EQ(float_bits(c), kCanonicalNan) << std::hex << u;
    }
  }
  EXPECT_EQ(wrong_at(bits_float(kDomainEnd - 1)), 0);
  EXPECT_EQ(wrong_at(bits_float(1)), 0);
}

TEST(SinCos, OddAndEvenToTheBit) {
  for (uint64_t u = 0; u < kDomainEnd; u += kSampleStride) {
    float s, c, minus_s, minus_c;
    sincos(bits_float(static_cast<uint32_t>(u)), s, c);
    sincos(bits_float(static_cast<uint32_t>(u) | 0x80000000u), minus_s, minus_c);
    ASSERT_EQ(float_bits(s) ^ 0x80000000u, float_bits(minus_s)) << std::hex << u;
    ASSERT_EQ(float_bits(c), float_bits(minus_c)) << std::hex << u;
  }
}

TEST(SinCos, NearestAtRandomAngles) {
  CounterRng rng(1);
  for (int i = 0; i < 20000; ++i) {
    const float x = mul(rng.uniform(), 0x1p19f);
    float s, c;
    sincos(x, s, c);
    const Pair want = mpfr_pair(x);
    ASSERT_EQ(float_bits(s), float_bits(want.sine)) << x;
    ASSERT_EQ(float_bits(c), float_bits(want.cosine)) << x;
  }
}

// The fp32 numbers nearest to a multiple of pi/2, where one of the two results is tiny and the
// reduction loses most.
TEST(SinCos, NearestBesideMultiplesOfHalfPi) {
  for (int k = 1; k < 667000; k += 7) {
    const uint32_t middle = float_bits(static_cast<float>(k * 1.5707963267948966));
    for (uint32_t u = middle - 1; u <= middle + 1 && u < kDomainEnd; ++u) {
      ASSERT_EQ(wrong_at(bits_float(u)), 0) << std::hex << u;
    }
  }
}

TEST(SinCos, NearestAtRopeAnglesSampled) { EXPECT_EQ(wrong_rope_angles(61), 0); }

TEST(SinCos, NearestAtRopeAnglesFull) { EXPECT_EQ(wrong_rope_angles(1), 0); }

TEST(SinCos, Sampled) {
  const uint64_t last = kDomainEnd - 1;
  expect_golden("sin", "sampled", sweep(apply_sin, nullptr, nullptr, kSampleStride, 0, last));
  expect_golden("cos", "sampled", sweep(apply_cos, nullptr, nullptr, kSampleStride, 0, last));
}

TEST(SinCos, EveryInputFull) {
  const uint64_t last = kDomainEnd - 1;
  expect_golden("sin", "all", sweep(apply_sin, nullptr, nullptr, 1, 0, last));
  expect_golden("cos", "all", sweep(apply_cos, nullptr, nullptr, 1, 0, last));
}

TEST(SinCos, WrongRoundingsAreRareFull) {
  std::atomic<int64_t> wrong{0};
  parallel(kDomainEnd >> 16, [&](int64_t block) {
    int64_t count = 0;
    for (uint32_t i = 0; i < 0x10000u; ++i) {
      count += wrong_at(bits_float((static_cast<uint32_t>(block) << 16) + i));
    }
    wrong += count;
  });
  std::printf("wrong roundings over all angles in [0, 2^20): %lld\n",
              static_cast<long long>(wrong.load()));
  EXPECT_LE(wrong, 16);
}

}  // namespace
}  // namespace sb::arith
