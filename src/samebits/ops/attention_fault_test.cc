// Each declared deviation of attention moves the rows it should and no other: a detector built on
// these bits can be trusted in both directions.
#include <gtest/gtest.h>

#include "samebits/ops/attention_testing.h"

namespace sb::ops_testing {
namespace {

// Rows whose bits `deviation` moves, as (sequence, position).
std::vector<Query> moved_rows(const AttentionSetup& s, const Keys& keys,
                              const std::vector<Query>& rows, Deviation deviation, Layout layout) {
  Rig rig;
  const auto q = random_tensor(1, {static_cast<int64_t>(rows.size()), s.heads, s.width}, 0.5f);
  const auto cache = filled_cache(s, keys, layout, 16, 4);
  const auto clean = attend(rig, s, q, rows, cache.view);
  const auto fault = attend(rig, s, q, rows, cache.view, deviation);
  std::vector<Query> moved;
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t t = static_cast<int64_t>(r);
    if (clean.row_bits(t) != fault.row_bits(t)) moved.push_back(rows[r]);
  }
  return moved;
}

template <class Expected>
void expect_moved(const std::vector<Query>& moved, const std::vector<Query>& rows,
                  Expected expected) {
  size_t next = 0;
  for (const Query& row : rows) {
    const bool found =
        next < moved.size() && moved[next].seq == row.seq && moved[next].pos == row.pos;
    EXPECT_EQ(found, expected(row)) << "sequence " << row.seq << ", position " << row.pos;
    next += found;
  }
}

const AttentionSetup kSliding{4, 2, 32, 24, 0}, kGlobal{4, 2, 32, 0, 64};

TEST(Attention, AWindowOneShortMovesTheRowsWhoseWindowIsFull) {
  const Keys keys(2, kSliding, {100, 23});
  const auto rows = all_rows(keys);
  for (const Layout layout : {Layout::kLinear, Layout::kPageKv}) {
    expect_moved(moved_rows(kSliding, keys, rows, Deviation::kWindowMinusOne, layout), rows,
                 [](Query r) { return r.pos >= 23; });
  }
}

TEST(Attention, AWindowOneLongMovesTheRowsThatHaveAKeyBeforeTheirWindow) {
  const Keys keys(3, kSliding, {100, 24});
  const auto rows = all_rows(keys);
  for (const Layout layout : {Layout::kLinear, Layout::kPageKv}) {
    expect_moved(moved_rows(kSliding, keys, rows, Deviation::kWindowPlusOne, layout), rows,
                 [](Query r) { return r.pos >= 24; });
  }
}

TEST(Attention, WindowFaultsDoNotTouchGlobalLayers) {
  const Keys keys(4, kGlobal, {100});
  const auto rows = all_rows(keys);
  for (const Deviation d : {Deviation::kWindowMinusOne, Deviation::kWindowPlusOne}) {
    EXPECT_TRUE(moved_rows(kGlobal, keys, rows, d, Layout::kLinear).empty());
  }
}

TEST(Attention, ALeakedKeyMovesPackedRowsThatSeeKeyZero) {
  // The rows before the first sequence of a packed batch do not exist; here they are NaN, and a
  // sequence that begins at row 0 has nothing to leak from.
  Keys keys(5, kGlobal, {30, 40});
  const auto rows = all_rows(keys);
  Rig rig;
  const auto q = random_tensor(6, {70, 4, 32});
  const auto cache = filled_cache(kGlobal, keys);
  KvView packed = cache.view;
  const int64_t skip = 3 * packed.token_stride;
  packed.k += skip, packed.v += skip;
  const auto base = int_tensor({0, 30});
  packed.table = base.view();
  const auto clean = attend(rig, kGlobal, q, rows, packed);
  const auto fault = attend(rig, kGlobal, q, rows, packed, Deviation::kKeyLeak);
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t t = static_cast<int64_t>(r);
    EXPECT_EQ(clean.row_bits(t) != fault.row_bits(t), rows[r].seq == 1) << r;
  }
  EXPECT_TRUE(moved_rows(kGlobal, keys, rows, Deviation::kKeyLeak, Layout::kPageKv).empty());
}

TEST(Attention, ALeakedKeyMovesSlidingRowsWhileKeyZeroIsInTheirWindow) {
  const Keys keys(7, kSliding, {30, 40});
  const auto rows = all_rows(keys);
  const auto moved = moved_rows(kSliding, keys, rows, Deviation::kKeyLeak, Layout::kLinear);
  expect_moved(moved, rows, [](Query r) { return r.pos < 24; });
}

TEST(Attention, ADroppedLastBlockMovesALoneRowThatHasAnother) {
  const Keys keys(8, kGlobal, {200});
  for (const Query row : {Query{0, 0}, Query{0, 63}, Query{0, 64}, Query{0, 130}}) {
    const auto moved = moved_rows(kGlobal, keys, {row}, Deviation::kDropLastBlock, Layout::kPageKv);
    EXPECT_EQ(moved.size(), row.pos >= 64 ? 1u : 0u) << row.pos;
    // Padding beside it does not hide it; a second live row does.
    EXPECT_EQ(moved_rows(kGlobal, keys, {row, {-1, 0}}, Deviation::kDropLastBlock, Layout::kPageKv)
                  .size(),
              row.pos >= 64 ? 1u : 0u);
    EXPECT_TRUE(
        moved_rows(kGlobal, keys, {row, {0, 150}}, Deviation::kDropLastBlock, Layout::kPageKv)
            .empty());
  }
}

TEST(Attention, ADroppedLastBlockEqualsTheContractWithoutThatBlock) {
  const Keys keys(9, kGlobal, {200});
  Rig rig;
  const auto q = random_tensor(10, {1, 4, 32});
  const auto cache = filled_cache(kGlobal, keys);
  const auto fault = attend(rig, kGlobal, q, {{0, 150}}, cache.view, Deviation::kDropLastBlock);
  const auto shorter = attend(rig, kGlobal, q, {{0, 127}}, cache.view);
  expect_same_bits(fault.row_bits(0), shorter.row_bits(0), "blocks 0 and 1 of three");
}

}  // namespace
}  // namespace sb::ops_testing
