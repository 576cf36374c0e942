// Attention against the contract written out in scalar form, and against softmax in double.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/ops/attention_testing.h"

namespace sb::ops_testing {
namespace {

AttentionSetup sliding(int window, int width = 32) { return {4, 2, width, window, 0}; }
AttentionSetup global(int segment, int width = 32) { return {4, 1, width, 0, segment}; }

// Positions where something begins or ends, of one sequence.
std::vector<Query> edges(int64_t length) {
  std::vector<Query> rows;
  for (const int p :
       {0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 191, 192, 193, 255, 256, 257, 299}) {
    if (p < length) rows.push_back({0, p});
  }
  return rows;
}

Tensor<bf16> queries(const AttentionSetup& s, size_t rows, float scale = 1.0f, uint64_t seed = 77) {
  return random_tensor(seed, {static_cast<int64_t>(rows), s.heads, s.width}, scale, 3);
}

TEST(Attention, SlidingLayersEqualTheContractOnEveryInstructionSet) {
  for (const Arithmetic& arithmetic : arithmetics()) {
    Rig rig(arithmetic, 2);
    for (const int window : {1, 24, 64, 100}) {
      const auto s = sliding(window, window == 24 ? 20 : 32);  // 20: no multiple of a step
      const Keys keys(1, s, {300});
      const auto rows = edges(300);
      const auto q = queries(s, rows.size());
      const auto cache = filled_cache(s, keys);
      expect_reference(arithmetic.profile, s, q, rows, keys, attend(rig, s, q, rows, cache.view),
                       arithmetic.name() + ", window " + std::to_string(window));
    }
  }
}

TEST(Attention, GlobalLayersEqualTheContractAtEverySegmentEdge) {
  for (const Arithmetic& arithmetic : arithmetics()) {
    Rig rig(arithmetic, 2);
    for (const int segment : {64, 128, 192, 4096}) {
      const auto s = global(segment);
      const Keys keys(2, s, {300});
      const auto rows = edges(300);
      const auto q = queries(s, rows.size());
      const auto cache = filled_cache(s, keys);
      expect_reference(arithmetic.profile, s, q, rows, keys, attend(rig, s, q, rows, cache.view),
                       arithmetic.name() + ", segment " + std::to_string(segment));
    }
  }
}

TEST(Attention, HeadsOf256And512EqualTheContract) {
  Rig rig;
  for (AttentionSetup s : {AttentionSetup{2, 1, 256, 1024, 0}, AttentionSetup{2, 1, 512, 0, 64}}) {
    const Keys keys(3, s, {131}, 0.2f);
    const std::vector<Query> rows{{0, 0}, {0, 63}, {0, 64}, {0, 130}};
    const auto q = queries(s, rows.size());
    const auto cache = filled_cache(s, keys);
    expect_reference(Profile::kSm90, s, q, rows, keys, attend(rig, s, q, rows, cache.view),
                     "D = " + std::to_string(s.width));
  }
}

TEST(Attention, SegmentsChangeTheBitsOfLongContextsOnly) {
  Rig rig;
  const auto one = global(4096), many = global(64);
  const Keys keys(4, one, {200});
  const auto rows = all_rows(keys);
  const auto q = queries(one, rows.size());
  const auto cache = filled_cache(one, keys);
  const auto a = attend(rig, one, q, rows, cache.view), b = attend(rig, many, q, rows, cache.view);
  int moved = 0;
  for (int64_t r = 0; r < 200; ++r) {
    const bool same = a.row_bits(r) == b.row_bits(r);
    EXPECT_TRUE(same || r >= 64) << r;
    moved += !same;
  }
  EXPECT_GT(moved, 100);
}

TEST(Attention, ProcessingBlocksWithoutAVisibleKeyChangesNothing) {
  for (const Profile profile : kProfiles) {
    Rig rig({profile, arith::best_isa()});
    for (const AttentionSetup& s : {sliding(24), sliding(100), global(64), global(128)}) {
      const Keys keys(5, s, {300});
      const auto rows = edges(300);
      const auto q = queries(s, rows.size(), 3.0f);
      const auto cache = filled_cache(s, keys);
      expect_reference(profile, s, q, rows, keys, attend(rig, s, q, rows, cache.view),
                       std::string(profile_name(profile)) + " with empty blocks", 3);
    }
  }
}

// Scores of several hundred: most weights vanish, a few rule; nothing may overflow or turn NaN.
TEST(Attention, ALargeSpreadOfScoresStaysFiniteAndEqualsTheContract) {
  for (const Profile profile : kProfiles) {
    Rig rig({profile, arith::best_isa()});
    for (const AttentionSetup& s : {sliding(100), global(128)}) {
      const Keys keys(6, s, {300}, 10.0f);
      const auto rows = edges(300);
      const auto q = queries(s, rows.size(), 12.0f);
      const auto cache = filled_cache(s, keys);
      const auto y = attend(rig, s, q, rows, cache.view);
      for (const float x : y.acc.values()) ASSERT_TRUE(is_finite_bits(float_bits(x)));
      for (const float x : y.lse.values()) ASSERT_TRUE(is_finite_bits(float_bits(x)));
      expect_reference(profile, s, q, rows, keys, y, profile_name(profile));
    }
  }
}

TEST(Attention, IsCloseToSoftmaxInDouble) {
  for (const Profile profile : kProfiles) {
    Rig rig({profile, arith::best_isa()});
    for (const AttentionSetup& s : {sliding(100), global(128)}) {
      Keys keys(7, s, {300});
      keys.v[0](250, 0, 2) = round_bf16(4096.0f);  // an outlier among values of about 1
      const auto rows = edges(300);
      const auto q = queries(s, rows.size(), 0.5f);
      const auto cache = filled_cache(s, keys);
      const auto y = attend(rig, s, q, rows, cache.view);
      for (size_t r = 0; r < rows.size(); ++r) {
        const int64_t t = static_cast<int64_t>(r), last = rows[r].pos;
        const int64_t first = s.window > 0 ? std::max<int64_t>(0, last - s.window + 1) : 0;
        for (int h = 0; h < s.heads; ++h) {
          const int g = h / (s.heads / s.kv_heads);
          double sum = 0;
          std::vector<double> o(static_cast<size_t>(s.width)), size(o);
          for (int64_t j = first; j <= last; ++j) {
            double score = 0;
            for (int d = 0; d < s.width; ++d) {
              score += double{widen(q(t, h, d))} * widen(keys.k[0](j, g, d));
            }
            const double p = std::exp(score);
            sum += p;
            for (size_t d = 0; d < o.size(); ++d) {
              const double v = widen(keys.v[0](j, g, static_cast<int64_t>(d)));
              o[d] += p * v;
              size[d] += p * std::abs(v);
            }
          }
          for (size_t d = 0; d < o.size(); ++d) {
            // tolerance: fp64 reference; each weight is rounded to bf16 for the product with v
            ASSERT_NEAR(y.acc(t, h, static_cast<int64_t>(d)), o[d] / sum, size[d] / sum * 0x1p-8);
          }
          // tolerance: fp64 reference
          ASSERT_NEAR(y.lse(t, h), std::log(sum), 2e-5);
        }
      }
    }
  }
}

// Keys of zero weigh the same; a value of one at a single key shows who sees it.
TEST(Attention, AWindowOf1024SeesItselfAnd1023KeysBefore) {
  Rig rig;
  const AttentionSetup s{1, 1, 16, 1024, 0};
  Keys keys(8, s, {1100});
  for (int64_t j = 0; j < 1100; ++j) {
    for (int d = 0; d < 16; ++d) {
      keys.k[0](j, 0, d) = bf16{};
      keys.v[0](j, 0, d) = round_bf16(j == 0 ? 1.0f : 0.0f);
    }
  }
  const std::vector<Query> rows{{0, 0}, {0, 1022}, {0, 1023}, {0, 1024}, {0, 1099}};
  const auto q = queries(s, rows.size());
  const auto y = attend(rig, s, q, rows, filled_cache(s, keys).view);
  EXPECT_EQ(y.acc(0, 0, 0), 1.0f);
  EXPECT_EQ(y.acc(1, 0, 0), 1.0f / 1023.0f);
  EXPECT_EQ(y.acc(2, 0, 0), 1.0f / 1024.0f);
  EXPECT_EQ(bits_of(y.acc(3, 0, 0)), 0u);
  EXPECT_EQ(bits_of(y.acc(4, 0, 0)), 0u);

  for (int64_t j = 0; j < 1100; ++j) {  // now only key 1 … 1024 of query 1024
    for (int d = 0; d < 16; ++d) keys.v[0](j, 0, d) = round_bf16(j == 1 || j == 1024 ? 1.0f : 0.0f);
  }
  const auto z = attend(rig, s, q, rows, filled_cache(s, keys).view);
  EXPECT_EQ(z.acc(3, 0, 0), 2.0f / 1024.0f);
}

// Keys that a row must not see hold NaN, infinity or 1e4: the row's bits do not move.
TEST(Attention, InvisibleKeysMayHoldAnything) {
  for (const AttentionSetup& s : {sliding(24), global(64)}) {
    const Keys clean(9, s, {200});
    const Query row{0, 100};
    const auto q = queries(s, 1);
    Rig rig;
    const auto expected = attend(rig, s, q, {row}, filled_cache(s, clean).view);
    for (const uint16_t poison : {uint16_t{0x7fff}, uint16_t{0x7f80}, uint16_t{0xff80},
                                  round_bf16(1e4f).bits, round_bf16(1e30f).bits}) {
      Keys keys = clean;
      for (int64_t j = 0; j < 200; ++j) {
        if (j <= 100 && (s.window == 0 || j > 100 - s.window)) continue;
        for (int i = 0; i < keys.k[0].row_size(); ++i) {
          keys.k[0].row(j)[i] = keys.v[0].row(j)[i] = bf16{poison};
        }
      }
      const auto y = attend(rig, s, q, {row}, filled_cache(s, keys).view);
      expect_same_bits(y.row_bits(0), expected.row_bits(0), "poison");
    }
  }
}

TEST(Attention, PaddingRowsAreLeftAloneAndChangeNoOther) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  const auto s = global(64);
  const Keys keys(10, s, {100, 40});
  const std::vector<Query> live{{0, 99}, {1, 39}, {0, 64}};
  const auto cache = filled_cache(s, keys);
  const auto q = queries(s, 3);
  const auto expected = attend(rig, s, q, live, cache.view);
  Tensor<bf16> padded({5, s.heads, s.width}, 3);
  const std::vector<Query> rows{{0, 99}, {-1, 0x7fffffff}, {1, 39}, {-1, 3}, {0, 64}};
  const int source[] = {0, -1, 1, -1, 2};
  for (int r = 0; r < 5; ++r) {
    if (source[r] >= 0) std::copy(q.row(source[r]), q.row(source[r]) + q.row_size(), padded.row(r));
    if (r == 3) std::fill(padded.row(r), padded.row(r) + q.row_size(), round_bf16(1e4f));
  }
  const auto y = attend(rig, s, padded, rows, cache.view);
  for (int r = 0; r < 5; ++r) {
    if (source[r] >= 0) {
      expect_same_bits(y.row_bits(r), expected.row_bits(source[r]), "live row");
    } else {
      for (const uint32_t b : y.row_bits(r)) ASSERT_TRUE(b == 0xffffu || b == 0xffffffffu);
    }
  }
}

TEST(Attention, ANanInAVisibleKeyMakesTheRowNan) {
  Rig rig;
  const auto s = global(64);
  Keys keys(11, s, {100});
  keys.k[0](30, 0, 3) = bf16{kBf16Nan};
  const std::vector<Query> rows{{0, 29}, {0, 30}, {0, 99}};
  const auto y = attend(rig, s, queries(s, 3), rows, filled_cache(s, keys).view);
  EXPECT_TRUE(is_finite_bits(bits_of(y.acc(0, 0, 0))));
  EXPECT_EQ(y.out(1, 0, 0).bits, kBf16Nan);
  EXPECT_EQ(y.out(2, 3, 31).bits, kBf16Nan);
  EXPECT_TRUE(is_nan_bits(bits_of(y.lse(2, 0))));
}

TEST(Attention, ARowDoesNotDependOnItsBatch) {
  for (const AttentionSetup& s : {sliding(24, 16), global(64, 16)}) {
    const Keys keys(12, s, {40, 90, 65});
    const auto cache = filled_cache(s, keys, Layout::kPageKv, 16, 5);
    std::vector<Query> rows;
    for (const Query row : all_rows(keys)) {
      if (row.pos % 2 == 0) rows.push_back(row);  // 98 rows of all three
    }
    const auto q = queries(s, rows.size());
    expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
      const std::vector<Query> some(rows.begin() + first, rows.begin() + first + count);
      Tensor<bf16> part({count, s.heads, s.width});
      for (int r = 0; r < count; ++r) {
        std::copy(q.row(first + r), q.row(first + r) + q.row_size(), part.row(r));
      }
      const auto y = attend(rig, s, part, some, cache.view);
      std::vector<RowBits> bits;
      for (int r = 0; r < count; ++r) bits.push_back(y.row_bits(r));
      return bits;
    });
  }
}

TEST(Attention, ZeroRowsRun) {
  Rig rig;
  const auto s = global(64);
  const Keys keys(13, s, {4});
  EXPECT_EQ(attend(rig, s, queries(s, 0), {}, filled_cache(s, keys).view).lse.values().size(), 0u);
}

}  // namespace
}  // namespace sb::ops_testing
