// Token embedding: x = R(E[id]·s), s = R(√hidden) = 73.5 at 5376, whatever the load dtype.
#include <gtest/gtest.h>

#include "samebits/ops/op_testing.h"
#include "samebits/ops/ops.h"

namespace sb::ops_testing {
namespace {

Tensor<bf16> embed(Rig& rig, const Tensor<bf16>& table, const std::vector<int32_t>& tokens,
                   const std::vector<int32_t>& seqs, Deviation deviation = Deviation::kNone,
                   int64_t gap = 0) {
  Tensor<bf16> out({static_cast<int64_t>(tokens.size()), table.size(1)}, gap);
  const auto token = int_tensor(tokens), seq = int_tensor(seqs);
  EXPECT_TRUE(ran(ops::embed(rig.ctx, kNowhere,
                             {table.view(), token.view(), seq.view(), out.view(), deviation})));
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

// Scale s as the operator applies it: the image of 1.
float scale_of(int64_t hidden, Deviation deviation = Deviation::kNone) {
  Rig rig;
  Tensor<bf16> ones({1, hidden});
  for (int64_t i = 0; i < hidden; ++i) ones(0, i) = round_bf16(1.0f);
  return widen(embed(rig, ones, {0}, {0}, deviation)(0, 0));
}

TEST(Embed, TheScaleOf5376IsExactly73Point5) {
  EXPECT_EQ(float_bits(scale_of(5376)), 0x42930000u);
  EXPECT_EQ(float_bits(scale_of(96)), float_bits(rounded(__builtin_sqrtf(96.0f))));
  EXPECT_EQ(float_bits(scale_of(336)), float_bits(rounded(__builtin_sqrtf(336.0f))));
}

TEST(Embed, EachElementIsOneProductRoundedOnce) {
  Rig rig;
  const auto table = random_tensor(1, {40, 5376}, 0.04f);
  const auto out = embed(rig, table, {39, 0, 7}, {0, 0, 1});
  for (const auto& [row, id] : {std::pair(0, 39), std::pair(1, 0), std::pair(2, 7)}) {
    for (int i = 0; i < 5376; ++i) {
      // A product of two bf16 values is exact in double.
      const double exact = static_cast<double>(widen(table(id, i))) * 73.5;
      ASSERT_EQ(out(row, i), round_bf16(static_cast<float>(exact))) << row << " " << i;
    }
  }
}

TEST(Embed, AnUnroundedScaleChangesElementsOfEveryRow) {
  Rig rig;
  const auto table = random_tensor(2, {8, 5376}, 0.04f);
  const std::vector<int32_t> ids{0, 1, 2, 3, 4, 5, 6, 7}, seqs(8, 0);
  const auto clean = embed(rig, table, ids, seqs);
  const auto fault = embed(rig, table, ids, seqs, Deviation::kEmbedScaleUnrounded);
  for (int row = 0; row < 8; ++row) {
    int moved = 0;
    for (int i = 0; i < 5376; ++i) {
      if (clean(row, i) == fault(row, i)) continue;
      ++moved;
      // The scale 73.32121 in place of 73.5.
      const float s = __builtin_sqrtf(5376.0f);
      ASSERT_EQ(fault(row, i), round_bf16(widen(table(row, i)) * s));
    }
    EXPECT_GT(moved, 1000);
  }
}

TEST(Embed, PaddingRowsAreLeftAloneWhateverTheirToken) {
  Rig rig;
  const auto table = random_tensor(3, {5, 96});
  const auto with = embed(rig, table, {3, 0x7fffffff, 1}, {0, -1, 2});
  const auto without = embed(rig, table, {3, 1}, {0, 2});
  for (int i = 0; i < 96; ++i) {
    ASSERT_EQ(with(0, i), without(0, i));
    ASSERT_EQ(with(1, i).bits, 0xffff);
    ASSERT_EQ(with(2, i), without(1, i));
  }
}

TEST(Embed, MinusZeroStaysMinusZeroAndNothingIsFlushed) {
  Rig rig;
  Tensor<bf16> table({1, 4});
  table(0, 0) = bf16{0x8000};
  table(0, 1) = bf16{0x0001};  // the smallest subnormal
  table(0, 2) = bf16{0x8001};
  table(0, 3) = bf16{0x0000};
  const auto out = embed(rig, table, {0}, {0});  // s = 2
  EXPECT_EQ(out(0, 0).bits, 0x8000);
  EXPECT_EQ(out(0, 1).bits, 0x0002);
  EXPECT_EQ(out(0, 2).bits, 0x8002);
  EXPECT_EQ(out(0, 3).bits, 0x0000);
}

TEST(Embed, ARowDoesNotDependOnItsBatch) {
  const auto table = random_tensor(4, {100, 336}, 1.0f, 5);
  expect_rows_do_not_depend_on_the_batch([&](Rig& rig, int first, int count) {
    std::vector<int32_t> ids, seqs(static_cast<size_t>(count), 0);
    for (int r = 0; r < count; ++r) ids.push_back((first + r) * 37 % 100);
    const auto out = embed(rig, table, ids, seqs, Deviation::kNone, 3);
    std::vector<RowBits> rows(static_cast<size_t>(count));
    for (int r = 0; r < count; ++r) append_bits(rows[static_cast<size_t>(r)], out.row(r), 336);
    return rows;
  });
}

TEST(Embed, ZeroRowsRun) {
  Rig rig;
  const auto table = random_tensor(5, {3, 16});
  EXPECT_EQ(embed(rig, table, {}, {}).values().size(), 0u);
}

}  // namespace
}  // namespace sb::ops_testing
