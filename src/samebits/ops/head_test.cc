// The head's bits: tiles, shards and ranks of the vocabulary against the contract written out.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/ops/head_testing.h"
#include "samebits/ops/reference_testing.h"

namespace sb::ops_testing {
namespace {

std::vector<int32_t> some_targets(int64_t rows, int64_t vocab) {
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>(r * 761 % vocab));
  return targets;
}

// Every third id suppressed, the targets excepted.
std::vector<uint8_t> some_suppressed(int64_t vocab, const std::vector<int32_t>& targets) {
  std::vector<uint8_t> s(static_cast<size_t>(vocab), 0);
  for (size_t i = 0; i < s.size(); i += 3) s[i] = 1;
  for (const int32_t y : targets) s[static_cast<size_t>(y)] = 0;
  return s;
}

void expect_contract(const Tensor<bf16>& z, const Tensor<bf16>& w, int64_t vocab,
                     const std::vector<int32_t>& targets, const HeadSetup& s) {
  const auto y = score(z, w, vocab, targets, s);
  for (int64_t r = 0; r < z.size(0); ++r) {
    std::vector<float> logit, capped, c;
    for (int64_t v = 0; v < vocab; ++v) {
      logit.push_back(reference::dot(s.arithmetic.profile, z.row(r), w.row(v), z.size(1)));
      capped.push_back(s.softcap * arith::tanh(logit.back() / s.softcap));
      c.push_back(capped.back() / s.temperature);
    }
    const auto shards = reference::head_shards(c, s.suppress);
    const auto all = reference::head_max_sum(shards);
    std::vector<float> ms;
    for (const auto& shard : shards) {
      ms.push_back(shard ? shard->m : reference::kMinusInf);
      ms.push_back(shard ? shard->s : 0.0f);
    }
    const std::string what =
        s.arithmetic.name() + ", V = " + std::to_string(vocab) + ", row " + std::to_string(r);
    expect_same_bits(std::vector(y.logit.row(r), y.logit.row(r) + vocab), logit, what + ", logit");
    expect_same_bits(std::vector(y.capped.row(r), y.capped.row(r) + vocab), capped,
                     what + ", softcap");
    expect_same_bits(std::vector(y.shard_ms.row(r), y.shard_ms.row(r) + 16), ms,
                     what + ", (m, S) of the shards");
    expect_same_bits(y.lse(r), all.m + arith::log(all.s), what + ", lse");
    const float target = c[static_cast<size_t>(targets[static_cast<size_t>(r)])];
    expect_same_bits(y.logp(r), reference::log_probability(target, all), what + ", logp");
  }
}

TEST(Head, EqualsTheContractForEveryVocabulary) {
  for (const int64_t vocab : {1, 255, 256, 300, 500, 2048, 2049, 2500, 5000}) {
    const auto z = random_tensor(1, {3, 48}, 1.0f, 5), w = random_tensor(2, {vocab, 48}, 2.0f, 3);
    expect_contract(z, w, vocab, some_targets(3, vocab), {});
  }
}

TEST(Head, EqualsTheContractOnEveryInstructionSet) {
  const auto z = random_tensor(3, {2, 40}), w = random_tensor(4, {600, 40}, 2.0f);
  for (const Arithmetic& arithmetic : arithmetics()) {
    HeadSetup s;
    s.arithmetic = arithmetic;
    expect_contract(z, w, 600, {599, 0}, s);
  }
}

TEST(Head, EqualsTheContractWithTemperatureAndSuppressedIds) {
  for (const int64_t vocab : {500, 2500}) {
    const auto z = random_tensor(5, {3, 32}), w = random_tensor(6, {vocab, 32}, 2.0f);
    HeadSetup s;
    s.temperature = 0.7f;
    const auto targets = some_targets(3, vocab);
    s.suppress = some_suppressed(vocab, targets);
    expect_contract(z, w, vocab, targets, s);
    // A whole tile and a whole shard suppressed.
    for (size_t v = 0; v < s.suppress.size(); ++v) s.suppress[v] = v < 512 && v != 3;
    s.suppress[3] = 0;
    expect_contract(z, w, vocab, {3, 3, 3}, s);
  }
}

TEST(Head, ShardsOfTwoFourAndEightRanksGiveTheBitsOfOne) {
  for (const int64_t vocab : {1, 300, 500, 2048, 2049, 2500, 5000}) {
    const auto z = random_tensor(7, {5, 32}), w = random_tensor(8, {vocab, 32}, 2.0f);
    const auto targets = some_targets(5, vocab);
    HeadSetup s;
    s.temperature = 1.3f;
    s.suppress = some_suppressed(vocab, targets);
    const auto whole = score(z, w, vocab, targets, s);
    for (const int ranks : {2, 4, 8}) {
      s.ranks = ranks;
      const auto split = score(z, w, vocab, targets, s);
      const std::string what = "V = " + std::to_string(vocab) + ", ranks " + std::to_string(ranks);
      expect_same_bits(split.logp.values(), whole.logp.values(), what + ", logp");
      expect_same_bits(split.lse.values(), whole.lse.values(), what + ", lse");
      expect_same_bits(split.shard_ms.values(), whole.shard_ms.values(), what + ", (m, S)");
      expect_same_bits(split.logit.values(), whole.logit.values(), what + ", logit");
      expect_same_bits(split.capped.values(), whole.capped.values(), what + ", softcap");
    }
  }
}

TEST(Head, RowsOfAPaddedWeightBehindTheVocabularyAreNeverCounted) {
  // Zero-padded rows would beat logits that are all −20.
  auto c = crafted(std::vector<float>(512, -20.0f));
  const auto expected = score(c.z, c.w, 500, {123});
  EXPECT_EQ(expected.logp.values().size(), 1u);
  // tolerance: fp64 reference
  EXPECT_NEAR(expected.logp(0), -std::log(500.0), 2e-6);
  for (const float padding : {0.0f, 100.0f, std::nanf("")}) {
    for (int64_t v = 500; v < 512; ++v) {
      for (int i = 0; i < 16; ++i) c.w(v, i) = round_bf16(padding);
    }
    for (const int ranks : {1, 8}) {
      HeadSetup s;
      s.ranks = ranks;
      expect_same_bits(score(c.z, c.w, 500, {123}, s).logp(0), expected.logp(0), "padding");
    }
  }
}

TEST(Head, SuppressedIdsLeaveTheSum) {
  const auto c = crafted({2.0f, 1.0f, 0.0f});
  HeadSetup s;
  s.suppress = {0, 0, 1};
  const auto y = score(c.z, c.w, 3, {0}, s);
  const auto without = crafted({2.0f, 1.0f});
  // Id 2 is the last one: leaving it out is the same tree as a vocabulary of two.
  expect_same_bits(y.logp(0), score(without.z, without.w, 2, {0}).logp(0), "two ids");
  EXPECT_FALSE(bits_of(y.logp(0)) == bits_of(score(c.z, c.w, 3, {0}).logp(0)));
}

TEST(Head, TheSumOfAllProbabilitiesIsOne) {
  const int64_t vocab = 2500;
  const auto row = random_tensor(9, {1, 32}), w = random_tensor(10, {vocab, 32}, 1.0f);
  Tensor<bf16> z({vocab, 32});
  std::vector<int32_t> targets;
  for (int32_t v = 0; v < vocab; ++v) {
    std::copy(row.row(0), row.row(0) + 32, z.row(v));
    targets.push_back(v);
  }
  HeadSetup s;
  s.temperature = 0.7f;
  double sum = 0;
  for (const float logp : score(z, w, vocab, targets, s).logp.values()) sum += std::exp(logp);
  // tolerance: fp64 reference
  EXPECT_NEAR(sum, 1.0, 1e-5);
}

TEST(Head, RowsWithoutATargetKeepTheirLogpAlone) {
  const auto z = random_tensor(11, {3, 32}), w = random_tensor(12, {300, 32});
  const auto all = score(z, w, 300, {5, 6, 7});
  const auto some = score(z, w, 300, {5, -1, 7});
  expect_same_bits(some.logp(0), all.logp(0), "row 0");
  EXPECT_EQ(bits_of(some.logp(1)), 0xffffffffu);
  expect_same_bits(some.logp(2), all.logp(2), "row 2");
  expect_same_bits(some.lse.values(), all.lse.values(), "lse needs no target");
}

TEST(Head, ARowDoesNotDependOnItsBatch) {
  const int64_t vocab = 300;
  const auto z = random_tensor(13, {65, 32}, 1.0f, 3), w = random_tensor(14, {vocab, 32}, 2.0f);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    Tensor<float> ms({1, count * 16}), c({1, count}), logp({count}), lse({count});
    std::vector<int32_t> targets, owners(static_cast<size_t>(count), 0);
    for (int r = 0; r < count; ++r) targets.push_back((first + r) * 7 % 300);
    const auto target = int_tensor(targets), owner = int_tensor(owners);
    HeadArgs a;
    a.z = z.rows(first, count);
    a.w = {w.data(), vocab, 32, 32};
    a.vocab = vocab;
    a.target = target.view();
    Tensor<float> tiles({count, 8, 2});
    a.tile_ms = tiles.view();
    a.shard_ms = make_view(ms.data(), Dtype::kF32, {count, 8, 2});
    a.c_target = make_view(c.data(), Dtype::kF32, {count});
    EXPECT_TRUE(ran(ops::head(rig.ctx, kNowhere, a)));
    EXPECT_TRUE(ran(ops::head_finish(rig.ctx, kNowhere,
                                     {make_view(ms.data(), Dtype::kF32, {1, count, 8, 2}), c.view(),
                                      owner.view(), logp.view(), lse.view()})));
    std::vector<RowBits> rows;
    for (int r = 0; r < count; ++r) rows.push_back({bits_of(logp(r)), bits_of(lse(r))});
    return rows;
  });
}

TEST(Head, NonFiniteLogitsNeverGiveAFiniteLogProbability) {
  // A NaN hidden row, and a whole tile of NaN columns beside finite ones.
  auto z = random_tensor(15, {2, 32});
  auto w = random_tensor(16, {600, 32});
  z(0, 9) = bf16{kBf16Nan};
  const auto y = score(z, w, 600, {5, 5});
  EXPECT_TRUE(is_nan_bits(bits_of(y.logp(0))) && is_nan_bits(bits_of(y.lse(0))));
  EXPECT_TRUE(is_finite_bits(bits_of(y.logp(1))));
  for (int64_t v = 256; v < 512; ++v) w(v, 0) = bf16{kBf16Nan};
  const auto tile = score(z, w, 600, {5, 5});
  EXPECT_TRUE(is_nan_bits(bits_of(tile.logp(1))) && is_nan_bits(bits_of(tile.lse(1))));
}

// c of a vanishing negative logit is −0; the maximum must not hang on which zero came first.
TEST(Head, AZeroMaximumIsPlusZero) {
  Rig rig;
  Tensor<bf16> z({1, 16}), w({1, 16});
  for (int i = 0; i < 16; ++i) z(0, i) = w(0, i) = bf16{};
  z(0, 0) = round_bf16(0x1p-75f), w(0, 0) = round_bf16(-0x1p-74f);
  Tensor<float> tiles({1, 8, 2}), ms({1, 8, 2}), c({1}), capped({1, 1});
  const auto target = int_tensor({0});
  HeadArgs a;
  a.z = z.view(), a.w = {w.data(), 1, 16, 16}, a.vocab = 1, a.target = target.view();
  a.tile_ms = tiles.view(), a.shard_ms = ms.view();
  a.c_target = c.view(), a.capped = capped.view();
  ASSERT_TRUE(ran(ops::head(rig.ctx, kNowhere, a)));
  EXPECT_EQ(bits_of(capped(0, 0)), 0x80000000u);
  EXPECT_EQ(bits_of(ms(0, 0, 0)), 0u);
  EXPECT_EQ(ms(0, 0, 1), 1.0f);
  for (int s = 1; s < 8; ++s) {  // shards without columns are empty
    EXPECT_EQ(bits_of(ms(0, s, 0)), 0xff800000u);
    EXPECT_EQ(bits_of(ms(0, s, 1)), 0u);
  }
}

TEST(Head, ZeroRowsRun) {
  const auto w = random_tensor(17, {300, 32});
  EXPECT_EQ(score(Tensor<bf16>({0, 32}), w, 300, {}).logp.values().size(), 0u);
}

}  // namespace
}  // namespace sb::ops_testing
