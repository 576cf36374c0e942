// The head's values: softcap before the log-sum-exp, in fp32; known answers of the ways in which
// engines have got it wrong; accuracy against double.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/ops/head_testing.h"

namespace sb::ops_testing {
namespace {

// log-probability of every id for these logits.
std::vector<float> log_probs(const std::vector<float>& logits, const HeadSetup& s = {}) {
  const int64_t n = static_cast<int64_t>(logits.size());
  const auto c = crafted(logits, n);
  std::vector<int32_t> targets;
  for (int32_t v = 0; v < n; ++v) targets.push_back(v);
  return score(c.z, c.w, n, targets, s).logp.values();
}

float softcap_of(float logit, Deviation deviation = Deviation::kNone) {
  const auto c = crafted({logit});
  HeadSetup s;
  s.deviation = deviation;
  return score(c.z, c.w, 1, {0}, s).capped(0, 0);
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                 double error) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    // tolerance: fp64 reference, or a published value with five decimals
    EXPECT_NEAR(actual[i], expected[i], error) << i;
  }
}

TEST(Head, SoftcapHasItsKnownValues) {
  // tolerance: fp64 reference
  EXPECT_NEAR(softcap_of(124.0f), 29.98459, 5e-6);
  // tolerance: fp64 reference
  EXPECT_NEAR(softcap_of(60.0f), 28.9208, 5e-5);
  EXPECT_EQ(bits_of(softcap_of(0.0f)), 0u);
  EXPECT_EQ(float_bits(softcap_of(-45.0f)), float_bits(softcap_of(45.0f)) ^ 0x80000000u);
  for (const float z : {0.01f, 1.0f, 5.0f, 10.0f, 20.0f, 25.25f, 45.0f, 300.0f}) {
    const double x = rounded(z);
    // tolerance: fp64 reference; 2 ulp
    EXPECT_NEAR(softcap_of(z), 30.0 * std::tanh(x / 30.0), std::abs(x) * 0x1p-22);
  }
}

TEST(Head, CraftedLogitsGiveTheCappedLogProbabilities) {
  expect_near(log_probs({124.0f, 0.0f, -50.0f}), {-0.0000, -29.9846, -57.9179}, 5e-5);
}

TEST(Head, AMissingSoftcapGivesTheRawLogProbabilities) {
  HeadSetup s;
  s.deviation = Deviation::kSoftcapMissing;
  expect_near(log_probs({124.0f, 0.0f, -50.0f}, s), {0.0, -124.0, -174.0}, 1e-5);
}

TEST(Head, EveryWrongSoftcapHasItsOwnSignature) {
  HeadSetup s;
  s.deviation = Deviation::kSoftcapTwice;
  // tolerance: published value with two decimals
  EXPECT_NEAR(softcap_of(124.0f, s.deviation), 22.84, 5e-3);
  s.deviation = Deviation::kSoftcapXTanh;
  expect_near(log_probs({124.0f, 0.0f, -50.0f}, s), {0.0, -123.94, -77.38}, 6e-3);
  EXPECT_GT(softcap_of(-50.0f, s.deviation), 0.0f);  // negative logits turn positive
}

TEST(Head, ASoftcapInBf16HasTheThreeRoundingsOfTheEngineThatDoesSo) {
  const std::pair<float, float> table[] = {{1.0f, 1.0f},    {5.0f, 4.9375f},   {10.0f, 9.6875f},
                                           {20.0f, 17.5f},  {25.25f, 20.625f}, {30.0f, 22.875f},
                                           {45.0f, 27.25f}, {124.0f, 30.0f},   {60.0f, 29.0f}};
  for (const auto& [z, wrong] : table) {
    EXPECT_EQ(softcap_of(z, Deviation::kSoftcapBf16), wrong) << z;
    EXPECT_NE(softcap_of(z), wrong) << z;
  }
}

TEST(Head, TemperatureDividesTheCappedLogits) {
  HeadSetup s;
  s.temperature = 0.7f;
  s.softcap = 0x1p20f;  // so wide that c is the logit to six digits
  expect_near(log_probs({2.0f, 1.0f, 0.0f}, s), {-0.26012, -1.68869, -3.11726}, 1.2e-5);
  s.temperature = 1.0f;
  expect_near(log_probs({2.0f, 1.0f, 0.0f}, s), {-0.40761, -1.40761, -2.40761}, 1.2e-5);

  s.softcap = 30.0f;
  s.temperature = 0.7f;
  std::vector<double> c;
  double sum = 0;
  for (const double z : {2.0, 1.0, 0.0}) {
    c.push_back(30.0 * std::tanh(z / 30.0) / double{0.7f});
    sum += std::exp(c.back());
  }
  for (double& x : c) x -= std::log(sum);
  expect_near(log_probs({2.0f, 1.0f, 0.0f}, s), c, 1e-6);
}

TEST(Head, LogProbabilitiesAreCloseToDoubleInEveryProfile) {
  const int64_t vocab = 5000;
  auto z = random_tensor(1, {4, 96});
  const auto w = random_tensor(2, {vocab, 96}, 1.5f);
  z(1, 7) = round_bf16(4096.0f);  // most logits of this row are far beyond the cap
  for (const Profile profile : kProfiles) {
    HeadSetup s;
    s.temperature = 0.9f;
    s.arithmetic = {profile, arith::best_isa()};
    const auto y = score(z, w, vocab, {0, 4999, 2500, 77}, s);
    for (int r = 0; r < 4; ++r) {
      std::vector<double> c;
      double m = -1e30, sum = 0;
      for (int64_t v = 0; v < vocab; ++v) {
        double logit = 0;
        for (int k = 0; k < 96; ++k) logit += double{widen(z(r, k))} * widen(w(v, k));
        c.push_back(30.0 * std::tanh(logit / 30.0) / double{0.9f});
        m = std::max(m, c.back());
      }
      for (const double x : c) sum += std::exp(x - m);
      const double lse = m + std::log(sum);
      const int target[] = {0, 4999, 2500, 77};
      const double bound = r == 1 ? 1e-2 : 3e-5;
      // tolerance: fp64 reference; logits of up to 60 in fp32, of up to 6000 in row 1
      EXPECT_NEAR(y.lse(r), lse, bound);
      // tolerance: fp64 reference
      EXPECT_NEAR(y.logp(r), c[static_cast<size_t>(target[r])] - lse, 2 * bound);
    }
  }
}

// bf16 logits would fall on a grid of 1/8 above 16; fp32 ones do not.
TEST(Head, LogitsAreNeverRoundedToBf16) {
  const auto z = random_tensor(3, {8, 96}), w = random_tensor(4, {500, 96}, 2.0f);
  const auto y = score(z, w, 500, std::vector<int32_t>(8, 0));
  int off_grid = 0;
  for (const float x : y.logit.values()) off_grid += rounded(x) != x;
  EXPECT_GT(off_grid, 3900);
}

TEST(Head, ShardsOfTheVocabularyArePowersOfTwoOfTiles) {
  EXPECT_EQ(head_shape(1).tiles_per_shard, 1);
  EXPECT_EQ(head_shape(2048).tiles_per_shard, 1);
  EXPECT_EQ(head_shape(2049).tiles_per_shard, 2);
  EXPECT_EQ(head_shape(5000).tiles_per_shard, 4);
  EXPECT_EQ(head_shape(262144).tiles_per_shard, 128);
  EXPECT_EQ(head_shape(262144).shard_of(262143), 7);
  EXPECT_EQ(shard_columns(2500, 4, 1).end - shard_columns(2500, 4, 1).begin, 452);
  EXPECT_EQ(shard_columns(2500, 5, 3).end - shard_columns(2500, 5, 3).begin, 0);
}

}  // namespace
}  // namespace sb::ops_testing
