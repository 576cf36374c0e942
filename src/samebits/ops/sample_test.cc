// Drawing tokens: the noise of an id depends on (seed, row id, position, id) and on nothing else.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/arith/log.h"
#include "samebits/base/digest.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

struct Draw {
  std::string row_id = "row";
  int32_t position = 0;
};

struct Drawn {
  Tensor<float> best;
  Tensor<int32_t> token;
  Tensor<float> c;
};

struct SampleSetup {
  float temperature = 1.0f;
  uint64_t seed = 1;
  bool greedy = false;
  std::vector<uint8_t> suppress;
  int64_t vocab_begin = 0;
};

Drawn sample(Rig& rig, const View& capped, const std::vector<Draw>& draws, const SampleSetup& s) {
  const int64_t n = static_cast<int64_t>(draws.size());
  Drawn d{Tensor<float>({n}), Tensor<int32_t>({n}), Tensor<float>({n})};
  std::vector<uint64_t> hash;
  std::vector<int32_t> position;
  for (const Draw& draw : draws) {
    hash.push_back(xxh64(draw.row_id));
    position.push_back(draw.position);
  }
  hash.resize(std::max<size_t>(hash.size(), 1));
  const auto pos = int_tensor(position);
  std::vector<uint8_t> suppress = s.suppress;
  SampleArgs a;
  a.capped = capped, a.vocab_begin = s.vocab_begin;
  if (!suppress.empty()) {
    a.suppress = make_view(suppress.data(), Dtype::kU8, {static_cast<int64_t>(suppress.size())});
  }
  a.row_hash = make_view(hash.data(), Dtype::kU64, {n});
  a.position = pos.view();
  a.temperature = s.temperature, a.seed = s.seed, a.greedy = s.greedy;
  a.best = d.best.view(), a.token = d.token.view(), a.c_token = d.c.view();
  EXPECT_TRUE(ran(ops::sample(rig.ctx, kNowhere, a)));
  return d;
}

Tensor<float> logits(uint64_t seed, int64_t rows, int64_t vocab, float scale = 5.0f) {
  Tensor<float> c({rows, vocab}, 3);
  CounterRng rng(seed);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < vocab; ++v) c(r, v) = (rng.uniform() - 0.5f) * scale;
  }
  return c;
}

std::vector<Draw> positions(int64_t n) {
  std::vector<Draw> draws;
  for (int64_t i = 0; i < n; ++i) draws.push_back({"row", static_cast<int32_t>(i)});
  return draws;
}

TEST(Sample, GreedyTakesTheLargestAndTheLowestIdOnTies) {
  Rig rig;
  Tensor<float> c({3, 6});
  c.set_row(0, {1, 3, 2, 3, 3, 0});
  c.set_row(1, {-1, -1, -1, -1, -1, -1});
  c.set_row(2, {0, 1, 2, 3, 4, 5});
  SampleSetup s;
  s.greedy = true;
  auto d = sample(rig, c.view(), positions(3), s);
  EXPECT_EQ(d.token.values(), (std::vector<int32_t>{1, 0, 5}));
  s.suppress = {0, 1, 0, 0, 0, 1};
  d = sample(rig, c.view(), positions(3), s);
  EXPECT_EQ(d.token.values(), (std::vector<int32_t>{3, 0, 4}));
}

TEST(Sample, GreedyComparesCItselfWhateverTheTemperature) {
  // Two neighbours that a division by 3 makes equal: the larger one still wins.
  Rig rig;
  float low = 0, high = 0;
  for (uint32_t b = 0x40c00000u; b < 0x40c00040u && high == 0; ++b) {
    if (bits_float(b) / 3.0f == bits_float(b + 1) / 3.0f) {
      low = bits_float(b), high = bits_float(b + 1);
    }
  }
  ASSERT_GT(high, low);
  Tensor<float> c({1, 2});
  c.set_row(0, {low, high});
  SampleSetup s;
  s.greedy = true;
  s.temperature = 3.0f;
  EXPECT_EQ(sample(rig, c.view(), positions(1), s).token(0), 1);
}

TEST(Sample, TheScoreIsTheContractWrittenOut) {
  Rig rig;
  const auto c = logits(1, 3, 50);
  SampleSetup s;
  s.temperature = 0.8f;
  s.seed = 0x123456789abcdef0ull;
  const std::vector<Draw> draws{{"a", 0}, {"b", 17}, {"a", 1 << 20}};
  const auto d = sample(rig, c.view(), draws, s);
  for (int r = 0; r < 3; ++r) {
    const uint64_t hash = xxh64(draws[static_cast<size_t>(r)].row_id);
    float best = -HUGE_VALF;
    int32_t token = -1;
    for (int32_t id = 0; id < 50; ++id) {
      const Philox4 counter{{static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32),
                             static_cast<uint32_t>(draws[static_cast<size_t>(r)].position),
                             static_cast<uint32_t>(id / 4)}};
      const uint32_t n = philox4x32_10(counter, s.seed).v[id % 4] >> 9;
      const float u = static_cast<float>((n + 0.5) * 0x1p-23);
      const float score = c(r, id) / 0.8f + -arith::log(-arith::log(u));
      if (score > best) best = score, token = id;
    }
    EXPECT_EQ(d.token(r), token);
    expect_same_bits(d.best(r), best, "score");
    expect_same_bits(d.c(r), c(r, token) / 0.8f, "c/T");
  }
}

TEST(Sample, ARowDoesNotDependOnItsBatch) {
  const auto c = logits(2, 65, 130);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    std::vector<Draw> draws;
    for (int r = 0; r < count; ++r) draws.push_back({"row" + std::to_string(first + r), r + first});
    const auto d = sample(rig, c.rows(first, count), draws, {});
    std::vector<RowBits> rows;
    for (int r = 0; r < count; ++r) rows.push_back({bits_of(d.best(r)), bits_of(d.token(r))});
    return rows;
  });
}

TEST(Sample, SuppressedIdsAreNeverDrawnAndOthersKeepTheirNoise) {
  Rig rig;
  const auto c = logits(3, 1, 20, 1.0f);
  SampleSetup s;
  s.suppress.assign(20, 0);
  for (const size_t id : {0, 7, 8, 19}) s.suppress[id] = 1;
  Tensor<float> many({2000, 20});
  for (int r = 0; r < 2000; ++r) std::copy(c.row(0), c.row(0) + 20, many.row(r));
  const auto d = sample(rig, many.view(), positions(2000), s);
  const auto free = sample(rig, many.view(), positions(2000), {});
  for (int r = 0; r < 2000; ++r) {
    ASSERT_FALSE(s.suppress[static_cast<size_t>(d.token(r))]);
    const bool kept = !s.suppress[static_cast<size_t>(free.token(r))];
    ASSERT_TRUE(!kept || d.token(r) == free.token(r));
  }
}

TEST(Sample, AllIdsSuppressedDrawsNone) {
  Rig rig;
  SampleSetup s;
  s.suppress.assign(20, 1);
  EXPECT_EQ(sample(rig, logits(4, 1, 20).view(), positions(1), s).token(0), -1);
}

// Two ranks each draw from their ids; the better score, the first on ties, is the whole's draw.
TEST(Sample, AVocabularySplitInTwoDrawsTheSameTokens) {
  Rig rig;
  for (const bool greedy : {false, true}) {
    for (const int64_t cut : {1, 6, 64, 129}) {
      const auto c = logits(5, 40, 130);
      SampleSetup s;
      s.greedy = greedy;
      s.temperature = 1.2f;
      const auto whole = sample(rig, c.view(), positions(40), s);
      View left = c.view(), right = c.view();
      left.shape[1] = cut;
      right.shape[1] = 130 - cut;
      right.ptr = static_cast<float*>(right.ptr) + cut;
      const auto a = sample(rig, left, positions(40), s);
      s.vocab_begin = cut;
      const auto b = sample(rig, right, positions(40), s);
      for (int r = 0; r < 40; ++r) {
        const bool second = b.best(r) > a.best(r);
        ASSERT_EQ(whole.token(r), second ? b.token(r) : a.token(r)) << "cut " << cut;
        ASSERT_EQ(bits_of(whole.c(r)), bits_of(second ? b.c(r) : a.c(r)));
      }
    }
  }
}

TEST(Sample, DrawsFollowTheSoftmax) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  constexpr int kDraws = 40000, kVocab = 7;
  const float c[kVocab] = {2.0f, 1.0f, 0.0f, 0.5f, -1.0f, 1.5f, -0.5f};
  Tensor<float> many({kDraws, kVocab});
  for (int r = 0; r < kDraws; ++r) std::copy(c, c + kVocab, many.row(r));
  SampleSetup s;
  s.temperature = 0.7f;
  s.seed = 42;
  std::vector<int> count(kVocab, 0);
  for (const int32_t t : sample(rig, many.view(), positions(kDraws), s).token.values()) {
    ++count[static_cast<size_t>(t)];
  }
  double sum = 0, chi = 0;
  for (const float x : c) sum += std::exp(x / 0.7);
  for (int v = 0; v < kVocab; ++v) {
    const double expected = kDraws * std::exp(c[v] / 0.7) / sum;
    chi += std::pow(count[static_cast<size_t>(v)] - expected, 2) / expected;
  }
  // tolerance: chi-square test with a fixed seed
  EXPECT_LT(chi, 22.46);  // 99.9 % of chi-square with six degrees of freedom
}

TEST(Sample, SeedRowAndPositionEachChangeTheDraws) {
  Rig rig;
  const auto c = logits(6, 200, 500, 0.1f);
  const auto base = sample(rig, c.view(), positions(200), {}).token.values();
  SampleSetup other;
  other.seed = 2;
  EXPECT_NE(sample(rig, c.view(), positions(200), other).token.values(), base);
  auto draws = positions(200);
  for (Draw& d : draws) d.row_id = "another";
  EXPECT_NE(sample(rig, c.view(), draws, {}).token.values(), base);
  draws = positions(200);
  for (Draw& d : draws) d.position += 1000;
  EXPECT_NE(sample(rig, c.view(), draws, {}).token.values(), base);
}

}  // namespace
}  // namespace sb::ops_testing
