#include "samebits/base/bf16.h"

#include <gtest/gtest.h>

#include <cmath>

#include "samebits/base/rng.h"

namespace sb {
namespace {

// Rounding by its definition, not by the trick: the nearer of the two bf16 neighbours of |x|, the
// even one on a tie. Exact in double.
uint16_t nearest_even(uint32_t u) {
  if (is_nan_bits(u)) return kBf16Nan;
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t down = (u & 0x7fffffffu) >> 16, up = down + 1;
  auto value = [](uint32_t bf16_bits) {  // 0x7f80, infinity, counts as 2^128
    return bf16_bits == 0x7f80u ? 0x1p128 : static_cast<double>(bits_float(bf16_bits << 16));
  };
  if (down == 0x7f80u) return static_cast<uint16_t>(sign | down);
  const double x = bits_float(u & 0x7fffffffu);
  const double below = x - value(down), above = value(up) - x;
  const bool take_up = above < below || (above == below && (down & 1));
  return static_cast<uint16_t>(sign | (take_up ? up : down));
}

TEST(Bf16, WideningAndRoundingIsTheIdentity) {
  for (uint32_t b = 0; b < 0x10000u; ++b) {
    const bf16 x{static_cast<uint16_t>(b)};
    const uint16_t expect = is_nan_bits(b << 16) ? kBf16Nan : x.bits;
    ASSERT_EQ(float_bits(widen(x)), b << 16);
    ASSERT_EQ(round_bf16(widen(x)).bits, expect) << std::hex << b;
  }
}

TEST(Bf16, RoundsToNearestEvenAroundEveryValue) {
  const uint32_t lows[] = {0, 1, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
  for (uint32_t high = 0; high < 0x10000u; ++high) {
    for (uint32_t low : lows) {
      const uint32_t u = high << 16 | low;
      ASSERT_EQ(round_bf16(bits_float(u)).bits, nearest_even(u)) << std::hex << u;
    }
  }
}

TEST(Bf16, RoundsRandomBitsByDefinition) {
  CounterRng rng(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint32_t u = rng.next();
    ASSERT_EQ(round_bf16(bits_float(u)).bits, nearest_even(u)) << std::hex << u;
  }
}

TEST(Bf16, KnownCases) {
  const struct {
    uint32_t in;
    uint16_t out;
  } cases[] = {
      {0x3f808000, 0x3f80},  // tie, to the even value below
      {0x3f818000, 0x3f82},  // tie, to the even value above
      {0x7f7f7fff, 0x7f7f},  // just below half-way to 2^128
      {0x7f7f8000, 0x7f80},  // half-way: infinity
      {0xff7fffff, 0xff80},  // -FLT_MAX: -infinity
      {0x7f800000, 0x7f80},  // infinity
      {0x00000001, 0x0000},  // the smallest fp32 subnormal
      {0x80008000, 0x8000},  // tie at half the smallest bf16: -0, even
      {0x00008001, 0x0001},  // just above it
      {0x007fffff, 0x0080},  // the largest subnormal becomes normal
      {0x80000000, 0x8000},  // -0
      {0x7f800001, kBf16Nan}, {0x7fffffff, kBf16Nan},
      {0xffc00000, kBf16Nan}, {0xffffffff, kBf16Nan},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(round_bf16(bits_float(c.in)).bits, c.out) << std::hex << c.in;
  }
}

TEST(Bf16, WorksAtCompileTime) {
  static_assert(round_bf16(73.5f).bits == 0x4293);
  static_assert(rounded(1.00390625f) == 1.0f);
  static_assert(widen(bf16{0x3f80}) == 1.0f);
}

TEST(Bits, IntegerHelpers) {
  static_assert(ceil_div(0, 4) == 0 && ceil_div(1, 4) == 1 && ceil_div(8, 4) == 2);
  static_assert(round_up(5, 4) == 8 && round_up(8, 4) == 8);
  EXPECT_TRUE(is_finite_bits(0x7f7fffff));
  EXPECT_FALSE(is_finite_bits(0xff800000));
  EXPECT_TRUE(is_nan_bits(0xff800001));
  EXPECT_FALSE(is_nan_bits(0xff800000));
  EXPECT_TRUE(is_nan_bits(kCanonicalNan));
}

}  // namespace
}  // namespace sb
