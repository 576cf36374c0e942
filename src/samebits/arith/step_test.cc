// The scalar models by hand-made cases, and against a second formulation in double arithmetic that
// shares no code with them.
#include "samebits/arith/step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "samebits/base/rng.h"

namespace sb::arith {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMaxFloat = std::numeric_limits<float>::max();

// The bits of one step over the given (a, b) pairs, each exact in bf16; the others are zero.
uint32_t run(Profile profile, float c, const std::vector<std::pair<float, float>>& products) {
  bf16 a[16] = {}, b[16] = {};
  for (size_t k = 0; k < products.size(); ++k) {
    a[k] = round_bf16(products[k].first);
    b[k] = round_bf16(products[k].second);
  }
  return float_bits(step(profile, a, b, c));
}

TEST(Step, AZeroResultIsPlusZeroAndZeroProductsKeepC) {
  for (const Profile p : kProfiles) {
    SCOPED_TRACE(profile_name(p));
    EXPECT_EQ(run(p, -0.0f, {}), 0u);
    EXPECT_EQ(run(p, -0.0f, {{-0.0f, 1.0f}, {0.0f, -3.0f}}), 0u);
    EXPECT_EQ(run(p, 0.0f, {{-0.0f, 1.0f}}), 0u);
    EXPECT_EQ(run(p, -1.0f, {{1.0f, 1.0f}}), 0u);
    EXPECT_EQ(run(p, 0.0f, {{1.0f, 1.0f}, {-1.0f, 1.0f}}), 0u);
    EXPECT_EQ(run(p, 0.0f, {{0x1p-120f, -0x1p-120f}}), 0u);  // a negative underflow
    for (const float c : {1.5f, -0x1p-149f, 0x1.fffffep-127f, kMaxFloat, kInf, -kInf}) {
      EXPECT_EQ(run(p, c, {{0.0f, 5.0f}, {-7.0f, 0.0f}}), float_bits(c));
    }
    EXPECT_EQ(run(p, kNan, {}), kCanonicalNan);
    EXPECT_EQ(run(p, bits_float(0xff800001u), {}), kCanonicalNan);
  }
}

TEST(Step, NonFiniteOperands) {
  for (const Profile p : kProfiles) {
    SCOPED_TRACE(profile_name(p));
    EXPECT_EQ(run(p, 1.0f, {{kInf, 2.0f}}), float_bits(kInf));
    EXPECT_EQ(run(p, 1.0f, {{kInf, -2.0f}, {1.0f, 1.0f}}), float_bits(-kInf));
    EXPECT_EQ(run(p, kInf, {{kInf, 2.0f}}), float_bits(kInf));
    EXPECT_EQ(run(p, -kInf, {{kInf, 2.0f}}), kCanonicalNan);
    EXPECT_EQ(run(p, 0.0f, {{kInf, 2.0f}, {-kInf, 2.0f}}), kCanonicalNan);
    EXPECT_EQ(run(p, 0.0f, {{kInf, 0.0f}}), kCanonicalNan);
    EXPECT_EQ(run(p, 0.0f, {{-0.0f, -kInf}}), kCanonicalNan);
    EXPECT_EQ(run(p, 0.0f, {{kNan, 0.0f}}), kCanonicalNan);
    EXPECT_EQ(run(p, -kInf, {{1.0f, 1.0f}}), float_bits(-kInf));
  }
}

TEST(Step, OneProductInEveryPlaceCounts) {
  for (const Profile p : kProfiles) {
    for (int k = 0; k < 16; ++k) {
      bf16 a[16] = {}, b[16] = {};
      a[k] = round_bf16(3.0f);
      b[k] = round_bf16(-5.0f);
      EXPECT_EQ(float_bits(step(p, a, b, 1.0f)), float_bits(-14.0f)) << profile_name(p) << k;
    }
  }
}

TEST(Sm90Step, TermsAndSumAreTruncatedTowardZero) {
  const auto run90 = [](float c, auto products) { return run(Profile::kSm90, c, products); };
  using Products = std::vector<std::pair<float, float>>;
  // The unit is 2^−25 for E = 0.
  EXPECT_EQ(run90(1.0f, Products{{0x1p-13f, -0x1p-13f}}), float_bits(1.0f));  // −2^−26 is cut
  EXPECT_EQ(run90(1.0f, Products{{0x1p-13f, -0x1p-12f}}), 0x3f7fffffu);       // 1 − 2^−25
  EXPECT_EQ(run90(-1.0f, Products{{0x1p-13f, -0x1p-12f}}), float_bits(-1.0f));
  EXPECT_EQ(run90(-0x1p-30f, Products{{1.0f, 1.0f}}), float_bits(1.0f));  // c is cut, not floored
  // Two halves of a unit are cut one by one, a whole one is kept.
  EXPECT_EQ(run90(1.0f, Products{{0x1p-13f, 0x1p-13f}, {0x1p-13f, 0x1p-13f}}), float_bits(1.0f));
  EXPECT_EQ(run90(1.0f, Products{{0x1p-12f, 0x1p-12f}, {0x1p-12f, 0x1p-12f}}), 0x3f800001u);
}

TEST(Sm90Step, SubnormalOperandsAreNotRenormalised) {
  // 2^100 · 2^−133: exponent 100 − 126 = −26, so the unit is 2^−51 and 2^−52 is cut away.
  EXPECT_EQ(run(Profile::kSm90, 0.0f, {{0x1p100f, 0x1p-133f}, {0x1p-26f, 0x1p-26f}}),
            float_bits(0x1p-33f));
  EXPECT_EQ(run(Profile::kSm90, 0.0f, {{0x1p100f, 0x1p-133f}, {0x1p-26f, 0x1p-25f}}),
            float_bits(0x1p-33f + 0x1p-51f));
  // A subnormal c has exponent −126: unit 2^−151.
  std::vector<std::pair<float, float>> eight(8, {0x1p-76f, 0x1p-76f});  // 8 · 2^−152 = 2^−149
  EXPECT_EQ(run(Profile::kSm90, 0x1p-149f, eight), 1u);
  EXPECT_EQ(run(Profile::kSm90, 0.0f, eight), 1u);
  std::vector<std::pair<float, float>> four(4, {0x1p-75f, 0x1p-76f});  // 4 · 2^−151
  EXPECT_EQ(run(Profile::kSm90, 0x1p-149f, four), 2u);
}

TEST(Sm90Step, TheExponentFloorIsMinus133) {
  // 2^−150 + … + 2^−158 + last + last: the unit is 2^−158 however small the products are.
  const auto sum = [](float sign, float last) {
    std::vector<std::pair<float, float>> products;
    for (int e = 150; e <= 158; ++e)
      products.push_back({sign * 0x1p-80f, std::ldexp(1.0f, 80 - e)});
    products.push_back({sign * 0x1p-80f, last});
    products.push_back({sign * 0x1p-80f, last});
    return run(Profile::kSm90, 0.0f, products);
  };
  EXPECT_EQ(sum(1, 0x1p-79f), 0u);  // two of 2^−159 are cut: just below 2^−149
  EXPECT_EQ(sum(1, 0x1p-78f), 1u);  // with 2^−158 the sum passes 2^−149
  EXPECT_EQ(sum(-1, 0x1p-78f), 0x80000001u);
  EXPECT_EQ(sum(-1, 0x1p-79f), 0u);  // negative, cut to zero: +0
}

TEST(Sm90Step, Overflow) {
  EXPECT_EQ(run(Profile::kSm90, 0.0f, {{0x1p127f, 2.0f}}), float_bits(kInf));
  EXPECT_EQ(run(Profile::kSm90, 0.0f, {{0x1p127f, -2.0f}}), float_bits(-kInf));
  // Products beyond fp32 may cancel: nothing is infinite before the sum.
  EXPECT_EQ(run(Profile::kSm90, 1.0f, {{0x1p127f, 0x1p127f}, {-0x1p127f, 0x1p127f}}), 0u);
  EXPECT_EQ(run(Profile::kSm90, kMaxFloat, {{0x1p51f, 0x1p51f}}), float_bits(kMaxFloat));
  EXPECT_EQ(run(Profile::kSm90, kMaxFloat, {{0x1p52f, 0x1p52f}}), float_bits(kInf));
}

TEST(Gfx942Step, CIsFlooredAndTheSumRoundedToNearestEven) {
  const Profile p = Profile::kGfx942;
  EXPECT_EQ(run(p, -0x1p-30f, {{1.0f, 1.0f}}), 0x3f7fffffu);  // floored to −2^−24
  EXPECT_EQ(run(p, 0x1p-30f, {{1.0f, 1.0f}}), float_bits(1.0f));
  EXPECT_EQ(run(p, -0x1p-149f, {{0x1p60f, 0x1p59f}}), float_bits(0x1p119f) - 1);
  EXPECT_EQ(run(p, 1.0f, {{0x1p-12f, 0x1p-12f}}), float_bits(1.0f));  // a tie goes to even
  EXPECT_EQ(run(p, 0x1.000002p0f, {{0x1p-12f, 0x1p-12f}}), float_bits(0x1.000004p0f));
  // The products' sum is floored to 2^−31 for E = 0: −2^−40 becomes −2^−31 and breaks the tie.
  EXPECT_EQ(run(p, 0x1.000002p0f, {{0x1p-12f, 0x1p-12f}, {0x1p-20f, -0x1p-20f}}),
            float_bits(0x1.000002p0f));
  // Each product is cut toward zero before that: −2^−25 beside 1 is gone, −2^−24 is not.
  EXPECT_EQ(run(p, -1.0f, {{1.0f, 1.0f}, {-0x1p-12f, 0x1p-13f}}), 0u);
  EXPECT_EQ(run(p, -1.0f, {{1.0f, 1.0f}, {-0x1p-12f, 0x1p-12f}}), float_bits(-0x1p-24f));
}

TEST(Gfx942Step, GroupsOfEightFollowEachOther) {
  bf16 a[16] = {}, b[16] = {};
  a[0] = round_bf16(0x1p24f), b[0] = round_bf16(1.0f);
  a[8] = round_bf16(1.0f), b[8] = round_bf16(1.0f);
  a[9] = a[8], b[9] = b[8];
  // First group: 2^24 and the c of −2^24 cancel; second group starts afresh from 0.
  EXPECT_EQ(float_bits(gfx942_step(a, b, -0x1p24f)), float_bits(2.0f));
  // 2^24 + 1 + 1 in the second group is exact; rounding each alone would lose both.
  EXPECT_EQ(float_bits(gfx942_step(a, b, 0.0f)), float_bits(0x1p24f + 2.0f));
}

TEST(Gfx942Step, ProductsOf2To128AreInfinite) {
  const Profile p = Profile::kGfx942;
  EXPECT_EQ(run(p, 0.0f, {{0x1p64f, 0x1p64f}, {-1.0f, 1.0f}}), float_bits(kInf));
  EXPECT_EQ(run(p, 0.0f, {{0x1p64f, 0x1p64f}, {-0x1p64f, 0x1p64f}}), kCanonicalNan);
  EXPECT_EQ(run(p, -kInf, {{0x1p64f, 0x1p64f}}), kCanonicalNan);
  EXPECT_EQ(run(p, 0.0f, {{0x1.8p64f, 0x1.8p63f}, {-0x1.8p64f, 0x1.8p63f}}), kCanonicalNan);
  EXPECT_EQ(run(p, 0.0f, {{0x1p64f, 0x1p63f}, {-0x1p64f, 0x1p63f}}), 0u);
  EXPECT_EQ(run(p, kMaxFloat, {{0x1p51f, 0x1p51f}}), float_bits(kMaxFloat));
  EXPECT_EQ(run(p, kMaxFloat, {{0x1p52f, 0x1p51f}}), float_bits(kInf));  // a tie goes to even
}

TEST(IeeeStep, IsOneFmaPerProductInOrder) {
  EXPECT_EQ(run(Profile::kIeee, 0x1p24f, {{1.0f, 1.0f}, {1.0f, 1.0f}}), float_bits(0x1p24f));
  EXPECT_EQ(run(Profile::kIeee, 0.0f, {{1.0f, 1.0f}, {1.0f, 1.0f}, {0x1p24f, 1.0f}}),
            float_bits(0x1p24f + 2.0f));
  EXPECT_EQ(run(Profile::kIeee, -0x1p127f, {{0x1p127f, 2.0f}}),
            float_bits(0x1p127f));  // one rounding
}

// The second formulation. Every value below is exact in double.
struct Exact {
  explicit Exact(bf16 x) : value(widen(x)), exponent(std::max(std::ilogb(value), -126)) {}
  explicit Exact(float x) : value(x), exponent(std::max(std::ilogb(value), -126)) {}
  double value;
  int exponent;  // meaningless for zero
};

float toward_zero(double x) {
  float y = static_cast<float>(x);
  if (std::fabs(static_cast<double>(y)) > std::fabs(x)) y = std::nextafter(y, 0.0f);
  if (std::fabs(x) >= 0x1p128) y = x < 0 ? -kInf : kInf;
  return y == 0 ? 0.0f : y;
}

double cut(double x, int unit) { return std::ldexp(std::trunc(std::ldexp(x, -unit)), unit); }
double floor_to(double x, int unit) { return std::ldexp(std::floor(std::ldexp(x, -unit)), unit); }

float sm90_in_double(const bf16* a, const bf16* b, float c) {
  int e = -133;
  if (c != 0) e = std::max(e, Exact(c).exponent);
  for (int k = 0; k < 16; ++k) {
    const Exact x(a[k]), y(b[k]);
    if (x.value * y.value != 0) e = std::max(e, x.exponent + y.exponent);
  }
  double sum = cut(c, e - 25);
  for (int k = 0; k < 16; ++k) sum += cut(Exact(a[k]).value * Exact(b[k]).value, e - 25);
  return toward_zero(sum);
}

float gfx942_in_double(const bf16* a, const bf16* b, float c) {
  int ep = -1000;
  double infinite = 0;  // sum of the products that count as infinite
  for (int k = 0; k < 8; ++k) {
    const Exact x(a[k]), y(b[k]);
    const double product = x.value * y.value;
    if (product != 0) ep = std::max(ep, x.exponent + y.exponent);
    if (std::fabs(product) >= 0x1p128) infinite += product < 0 ? -kInf : kInf;
  }
  if (std::isnan(infinite)) return bits_float(kCanonicalNan);
  if (infinite != 0) return static_cast<float>(infinite);
  if (ep == -1000) return c == 0 ? 0.0f : c;
  double sum = 0;
  for (int k = 0; k < 8; ++k) sum += cut(Exact(a[k]).value * Exact(b[k]).value, ep - 24);
  const int e = std::max(ep, c == 0 ? -126 : Exact(c).exponent);
  const auto y = static_cast<float>(floor_to(sum, e - 31) + floor_to(c, e - 24));
  return y == 0 ? 0.0f : y;
}

// Finite operands whose exponents lie in a window that moves with the trial; some zeros.
bf16 random_operand(CounterRng& rng, int low_field, int width) {
  const uint32_t u = rng.next();
  if (u % 9 == 0) return bf16{static_cast<uint16_t>((u >> 16) & 0x8000u)};
  const int field = low_field + static_cast<int>(rng.below(static_cast<uint32_t>(width)));
  return bf16{static_cast<uint16_t>((u & 0x807fu) | static_cast<uint32_t>(field << 7))};
}

TEST(Step, EqualsASecondFormulationInDouble) {
  CounterRng rng(11);
  for (int trial = 0; trial < 200000; ++trial) {
    const int width = trial % 2 != 0 ? 6 : 24;
    const int low_a = static_cast<int>(rng.below(static_cast<uint32_t>(255 - width)));
    // Half of the trials near underflow of the product, where fields sum to about 121.
    const int near = std::clamp(121 - low_a - width, 0, 254 - width);
    const int low_b =
        trial % 4 < 2 ? near : static_cast<int>(rng.below(static_cast<uint32_t>(255 - width)));
    bf16 a[16], b[16];
    for (int k = 0; k < 16; ++k) {
      a[k] = random_operand(rng, low_a, width);
      b[k] = random_operand(rng, low_b, width);
    }
    uint32_t c_bits = rng.next();
    const int c_field =
        std::clamp(low_a + low_b - 127 + static_cast<int>(rng.below(60)) - 20, 0, 254);
    c_bits = (c_bits & 0x807fffffu) | (static_cast<uint32_t>(c_field) << 23);
    const float c = trial % 5 == 0 ? 0.0f : bits_float(c_bits);
    // 17 terms of at most 28 bits on one unit, or two on units 7 bits apart: sums are exact.
    ASSERT_EQ(float_bits(sm90_step(a, b, c)), float_bits(sm90_in_double(a, b, c))) << trial;
    ASSERT_EQ(float_bits(gfx942_group(a, b, c)), float_bits(gfx942_in_double(a, b, c))) << trial;
  }
}

}  // namespace
}  // namespace sb::arith
