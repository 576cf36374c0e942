// Rotary embedding: pairs (i, i + D/2), and pairs beyond the table copied bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "samebits/arith/sincos.h"
#include "samebits/model/rope_table.h"
#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

constexpr int64_t kBlock = 1024;

// A table in which every block is the one that holds `position`: its blocks share memory (stride
// 0), so a test at position 262143 needs 512 KiB and not 128 MiB.
struct OneBlock {
  std::vector<float> values;
  View view;
  int pairs = 0;
  OneBlock(double theta, int head_dim, int rotary_pairs, int64_t position) : pairs(rotary_pairs) {
    const auto inv_freq = *rope_inv_freq(theta, head_dim, rotary_pairs);
    values.resize(static_cast<size_t>(2 * kBlock * pairs));
    const int64_t first = position / kBlock * kBlock;
    for (int64_t p = 0; p < kBlock; ++p) {
      for (int i = 0; i < pairs; ++i) {
        const size_t at = static_cast<size_t>(p * pairs + i);
        const float angle = inv_freq[static_cast<size_t>(i)] * static_cast<float>(first + p);
        arith::sincos(angle, values[static_cast<size_t>(kBlock * pairs) + at], values[at]);
      }
    }
    view = make_view(values.data(), Dtype::kF32, {256, 2, kBlock, pairs});
    view.stride[0] = 0;
  }
  float cosine(int64_t p, int i) const {
    return values[static_cast<size_t>(p % kBlock * pairs + i)];
  }
  float sine(int64_t p, int i) const {
    return values[static_cast<size_t>((kBlock + p % kBlock) * pairs + i)];
  }
};

Tensor<bf16> rope(Rig& rig, const Tensor<bf16>& x, const View& table,
                  const std::vector<int32_t>& pos, std::vector<int32_t> seq = {}, int64_t gap = 0,
                  Deviation deviation = Deviation::kNone) {
  if (seq.empty()) seq.assign(pos.size(), 0);
  Tensor<bf16> out({x.size(0), x.size(1), x.size(2)}, gap);
  const auto p = int_tensor(pos), s = int_tensor(seq);
  EXPECT_TRUE(ran(
      ops::rope(rig.ctx, kNowhere, {x.view(), table, p.view(), s.view(), out.view(), deviation})));
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

void expect_contract(const OneBlock& table, int head_dim, int64_t pos, uint64_t seed) {
  Rig rig;
  const auto x = random_tensor(seed, {1, 3, head_dim});
  const auto y = rope(rig, x, table.view, {static_cast<int32_t>(pos)}, {}, 5);
  const int half = head_dim / 2;
  for (int h = 0; h < 3; ++h) {
    for (int i = 0; i < half; ++i) {
      const float a = widen(x(0, h, i)), b = widen(x(0, h, i + half));
      if (i >= table.pairs) {
        ASSERT_EQ(y(0, h, i), x(0, h, i));
        ASSERT_EQ(y(0, h, i + half), x(0, h, i + half));
        continue;
      }
      const float c = table.cosine(pos, i), s = table.sine(pos, i);
      const float ac = a * c, bs = b * s, bc = b * c, as = a * s;
      ASSERT_EQ(y(0, h, i), round_bf16(ac - bs)) << pos << " " << i;
      ASSERT_EQ(y(0, h, i + half), round_bf16(bc + as)) << pos << " " << i;
    }
  }
}

TEST(Rope, EqualsTheContractOnBothLayerTypesAtEveryDistance) {
  for (const int64_t pos : {int64_t{0}, int64_t{1}, int64_t{187}, int64_t{188}, int64_t{1023},
                            int64_t{1024}, int64_t{262143}}) {
    expect_contract(OneBlock(10000.0, 256, 128, pos), 256, pos, 1);
    expect_contract(OneBlock(1e6, 512, 64, pos), 512, pos, 2);
  }
}

// Contraction into an fma shows in one output of some ten thousands, so there are millions.
TEST(Rope, NoProductIsFusedIntoItsSum) {
  Rig rig({Profile::kSm90, arith::best_isa()}, 2);
  const OneBlock table(10000.0, 256, 128, 0);
  const auto x = random_tensor(8, {1000, 8, 256});
  std::vector<int32_t> positions;
  for (int r = 0; r < 1000; ++r) positions.push_back(r);
  const auto y = rope(rig, x, table.view, positions);
  for (int r = 0; r < 1000; ++r) {
    for (int h = 0; h < 8; ++h) {
      for (int i = 0; i < 128; ++i) {
        const float a = widen(x(r, h, i)), b = widen(x(r, h, i + 128));
        const float c = table.cosine(r, i), s = table.sine(r, i);
        const float ac = a * c, bs = b * s, bc = b * c, as = a * s;
        ASSERT_EQ(y(r, h, i), round_bf16(ac - bs)) << r << " " << h << " " << i;
        ASSERT_EQ(y(r, h, i + 128), round_bf16(bc + as)) << r << " " << h << " " << i;
      }
    }
  }
}

TEST(Rope, IsARotationByTheTrueAngle) {
  const OneBlock table(1e6, 512, 64, 1023);
  Rig rig;
  auto x = random_tensor(3, {1, 1, 512});
  x(0, 0, 5) = x(0, 0, 256 + 9) = round_bf16(4096.0f);  // an outlier in either half of a pair
  const auto y = rope(rig, x, table.view, {1023});
  for (int i = 0; i < 64; ++i) {
    const double angle = 1023.0 * std::pow(1e6, -2.0 * i / 512);
    const double a = widen(x(0, 0, i)), b = widen(x(0, 0, i + 256));
    const double error = (std::abs(a) + std::abs(b)) * (0x1p-8 + 1e-4);
    // tolerance: fp64 reference; half a bf16 ulp, and the fp32 angle of up to 1023
    EXPECT_NEAR(widen(y(0, 0, i)), a * std::cos(angle) - b * std::sin(angle), error);
    // tolerance: fp64 reference
    EXPECT_NEAR(widen(y(0, 0, i + 256)), b * std::cos(angle) + a * std::sin(angle), error);
  }
}

TEST(Rope, PassThroughLanesAreTheInputBytesAtEveryPosition) {
  Rig rig;
  Tensor<bf16> x({1, 1, 512});
  CounterRng rng(4);
  for (int i = 0; i < 512; ++i) x(0, 0, i) = bf16{static_cast<uint16_t>(rng.next())};
  x(0, 0, 64) = x(0, 0, 255) = x(0, 0, 320) = x(0, 0, 511) = bf16{0x8000};  // −0 stays −0
  x(0, 0, 100) = bf16{0xffc1};  // even a NaN's payload: a copy, not a product
  for (const int32_t pos : {1, 1023, 262143}) {
    const OneBlock table(1e6, 512, 64, pos);
    const auto y = rope(rig, x, table.view, {pos});
    for (int i = 0; i < 512; ++i) {
      if (i % 256 < 64) continue;
      ASSERT_EQ(y(0, 0, i), x(0, 0, i)) << "lane " << i << " at " << pos;
    }
  }
}

TEST(Rope, AUnitVectorOnLaneZeroReachesLanesZeroAnd256Only) {
  Rig rig;
  Tensor<bf16> x({1, 1, 512});
  for (int i = 0; i < 512; ++i) x(0, 0, i) = round_bf16(i == 0 ? 1.0f : 0.0f);
  const auto y = rope(rig, x, OneBlock(1e6, 512, 64, 1).view, {1});
  for (int i = 0; i < 512; ++i) {
    if (i == 0) {
      EXPECT_EQ(y(0, 0, i), round_bf16(0.540302306f));  // cos 1
    } else if (i == 256) {
      EXPECT_EQ(y(0, 0, i), round_bf16(0.841470985f));  // sin 1
    } else {
      ASSERT_EQ(y(0, 0, i).bits & 0x7fff, 0) << i;
    }
  }
}

// Exponents that count the rotated lanes still move energy from lane i to i + 256; another pairing
// moves it inside the prefix. At position 0 neither can be told from the contract.
TEST(Rope, AWrongFrequencyKeepsThePairsAndAWrongPairingDoesNot) {
  Rig rig;
  const auto lanes = [&](int lane, const OneBlock& table, Deviation deviation, int32_t pos) {
    Tensor<bf16> x({1, 1, 512});
    for (int i = 0; i < 512; ++i) x(0, 0, i) = round_bf16(i == lane ? 1.0f : 0.0f);
    const auto y = rope(rig, x, table.view, {pos}, {}, 0, deviation);
    std::vector<int> moved;
    for (int i = 0; i < 512; ++i) {
      if (y(0, 0, i).bits & 0x7fff) moved.push_back(i);
    }
    return moved;
  };
  const OneBlock right(1e6, 512, 64, 1), frequency(1e6, 128, 64, 1);
  const Deviation none = Deviation::kNone, pairing = Deviation::kRopePairing;
  for (const int lane : {0, 16, 63}) {
    EXPECT_EQ(lanes(lane, right, none, 1), (std::vector{lane, lane + 256}));
    EXPECT_EQ(lanes(lane, frequency, none, 1), (std::vector{lane, lane + 256}));
    EXPECT_EQ(lanes(lane, right, pairing, 1), (std::vector{lane, lane + 64}));
    EXPECT_EQ(lanes(lane, right, pairing, 0), std::vector{lane});
  }
  EXPECT_EQ(lanes(64, right, none, 1), std::vector{64});
  EXPECT_EQ(lanes(64, right, pairing, 1), (std::vector{0, 64}));
  const auto x = random_tensor(6, {1, 2, 512});
  const auto y = rope(rig, x, right.view, {1});
  EXPECT_NE(rope(rig, x, frequency.view, {1}).values(), y.values());
  EXPECT_NE(rope(rig, x, right.view, {1}, {}, 0, pairing).values(), y.values());
  expect_same_bits(rope(rig, x, frequency.view, {0}).values(), x.values(), "frequency, 0");
  expect_same_bits(rope(rig, x, right.view, {0}, {}, 0, pairing).values(), x.values(),
                   "pairing, 0");
}

TEST(Rope, PositionZeroIsTheIdentityOnFiniteValues) {
  Rig rig;
  const auto x = random_tensor(5, {1, 2, 256});
  const auto y = rope(rig, x, OneBlock(10000.0, 256, 128, 0).view, {0});
  expect_same_bits(y.values(), x.values(), "position 0");
}

TEST(Rope, PaddingRowsAreLeftAlone) {
  Rig rig;
  const OneBlock table(10000.0, 16, 8, 0);
  auto x = random_tensor(6, {3, 2, 16});
  const auto clean = rope(rig, x, table.view, {5, 9, 6}, {0, 0, 0});
  for (int i = 0; i < 32; ++i) x.row(1)[i] = bf16{kBf16Nan};
  const auto y = rope(rig, x, table.view, {5, 0x7fffffff, 6}, {0, -1, 1});
  for (int i = 0; i < 32; ++i) {
    ASSERT_EQ(y.row(0)[i], clean.row(0)[i]);
    ASSERT_EQ(y.row(1)[i].bits, 0xffff);
    ASSERT_EQ(y.row(2)[i], clean.row(2)[i]);
  }
}

TEST(Rope, ARowDoesNotDependOnItsBatch) {
  const OneBlock table(1e6, 512, 64, 0);
  const auto x = random_tensor(7, {65, 2, 512}, 1.0f, 3);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    std::vector<int32_t> positions, seqs(static_cast<size_t>(count), 0);
    for (int r = 0; r < count; ++r) positions.push_back((first + r) * 13);
    const auto pos = int_tensor(positions), seq = int_tensor(seqs);
    Tensor<bf16> out({count, 2, 512}, 1);
    EXPECT_TRUE(
        ran(ops::rope(rig.ctx, kNowhere,
                      {x.rows(first, count), table.view, pos.view(), seq.view(), out.view()})));
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) append_bits(rows[static_cast<size_t>(r)], out.row(r), 1024);
    return rows;
  });
}

}  // namespace
}  // namespace sb::ops_testing
