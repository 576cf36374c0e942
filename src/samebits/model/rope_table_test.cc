#include "samebits/model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "samebits/base/bits.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

std::vector<float> freq(double theta, int dim, int pairs) {
  auto f = rope_inv_freq(theta, dim, pairs);
  EXPECT_TRUE(f) << (f ? "" : f.error().text());
  return f ? *f : std::vector<float>();
}

TEST(RopeFrequencies, PublishedValues) {
  const auto s = freq(1e4, 256, 128), g = freq(1e6, 512, 64);
  EXPECT_EQ(float_bits(s[0]), 0x3f800000u);
  EXPECT_EQ(float_bits(s[1]), 0x3f6e39f8u);
  EXPECT_EQ(float_bits(s[64]), 0x3c23d70au);
  EXPECT_EQ(float_bits(s[127]), 0x38e15c92u);
  EXPECT_EQ(float_bits(g[1]), 0x3f728cf8u);
  EXPECT_EQ(float_bits(g[32]), 0x3e361887u);
  EXPECT_EQ(float_bits(g[63]), 0x3d08b588u);
  // The exponent counts the whole head (512): with 128 these would be 0.0316, 0.001, 1.2e-6.
  // tolerance: decimal digits of the published table
  EXPECT_NEAR(g[16], 0.42170, 5e-6);
  EXPECT_NEAR(g[32], 0.17783, 5e-6);
  EXPECT_NEAR(g[63], 0.033376, 5e-7);
}

// Asking for one more pair than there are literals takes the general routine.
TEST(RopeFrequencies, LiteralsEqualTheGeneralRoutine) {
  const auto general = freq(1e6, 512, 65), literal = freq(1e6, 512, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(float_bits(general[i]), float_bits(literal[i])) << i;
  // theta^(−2i/256) with theta 1e4 is (1e4²)^(−2i/512): the routine's way to the sliding values.
  const auto doubled = freq(1e8, 512, 128), sliding = freq(1e4, 256, 128);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(float_bits(doubled[i]), float_bits(sliding[i])) << i;
}

TEST(RopeFrequencies, CorrectlyRoundedAgainstLongDouble) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "no wide long double here";
  for (auto [theta, dim] : {std::pair(1e4, 16),
                            {1e6, 32},
                            {1e4, 256},
                            {1e6, 512},
                            {100.0, 36},
                            {5e5, 128},
                            {12345.678, 96}}) {
    const auto f = freq(theta, dim, dim / 2);
    for (int i = 0; i < dim / 2; ++i) {
      const long double exact = std::pow(static_cast<long double>(theta), -2.0L * i / dim);
      const float down = std::nextafterf(f[i], 0.0f), up = std::nextafterf(f[i], 2.0f);
      EXPECT_GE(exact, (static_cast<long double>(f[i]) + down) / 2 * (1 - 0x1p-60L))
          << dim << " " << i;
      EXPECT_LE(exact, (static_cast<long double>(f[i]) + up) / 2 * (1 + 0x1p-60L))
          << dim << " " << i;
    }
  }
  EXPECT_EQ(float_bits(freq(100, 36, 18)[1]), 0x3f463625u);
  EXPECT_EQ(float_bits(freq(100, 36, 18)[17]), 0x3c539b85u);
}

TEST(RopeFrequencies, Refusals) {
  EXPECT_FALSE(rope_inv_freq(1.0, 256, 128));
  EXPECT_FALSE(rope_inv_freq(NAN, 256, 128));
  EXPECT_FALSE(rope_inv_freq(1e4, 255, 10));
  EXPECT_FALSE(rope_inv_freq(1e4, 256, 129));
}

TEST(RopeTable, RowsAreRoundedSinesOfTheFp32Angle) {
  const RopeTable table(*preset_architecture("gemma4-31b"));
  EXPECT_EQ(table.num_blocks(), 256);
  for (LayerType t : {LayerType::kSliding, LayerType::kGlobal}) {
    for (int64_t p : {0, 1, 187, 1023, 1024, 262143}) {
      const RopeBlock& b = table.block_of(t, p);
      ASSERT_EQ(b.first, p / 1024 * 1024);
      for (int i = 0; i < b.pairs; ++i) {
        const float angle = table.inv_freq(t)[i] * static_cast<float>(p);
        const double cosine = std::cos(static_cast<double>(angle));
        const double sine = std::sin(static_cast<double>(angle));
        // tolerance: libm's double functions, one rounding to fp32 away
        EXPECT_NEAR(b.cos_row(p)[i], cosine, 0x1p-24) << p << " " << i;
        EXPECT_NEAR(b.sin_row(p)[i], sine, 0x1p-24) << p << " " << i;
      }
    }
  }
  const RopeBlock& b = table.block(LayerType::kGlobal, 0);
  EXPECT_EQ(b.pairs, 64);
  EXPECT_EQ(b.values.size(), 2u * 1024 * 64);
  EXPECT_EQ(b.cos_row(0)[5], 1.0f);
  EXPECT_EQ(float_bits(b.sin_row(0)[5]), 0u);
}

TEST(RopeTable, ThreadsSeeOneBlock) {
  const RopeTable table(*preset_architecture("tiny"));
  std::vector<const RopeBlock*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] { seen[i] = &table.block(LayerType::kSliding, 3); });
    }
  }
  for (const RopeBlock* b : seen) EXPECT_EQ(b, seen[0]);
}

}  // namespace
}  // namespace sb
