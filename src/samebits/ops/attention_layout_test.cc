// The cache: one set of keys and values in every layout gives the same bits, and writing puts each
// row in its slot and nowhere else.
#include <gtest/gtest.h>

#include "samebits/ops/attention_testing.h"

namespace sb::ops_testing {
namespace {

constexpr int kPages[] = {16, 64, 128};
constexpr Layout kPaged[] = {Layout::kPageKv, Layout::kHeadMajor};

std::string name_of(Layout layout, int page) {
  return std::string(layout == Layout::kPageKv ? "[blocks,2,page,H,D]" : "[blocks,H,page,2D]") +
         ", page " + std::to_string(page);
}

TEST(Attention, PagedBitsAreLinearBitsForEveryPageSizeLayoutAndOrder) {
  for (const AttentionSetup& s : {AttentionSetup{4, 2, 32, 24, 0}, AttentionSetup{4, 2, 32, 100, 0},
                                  AttentionSetup{4, 2, 32, 0, 64}}) {
    const Keys keys(1, s, {1, 63, 64, 65, 150});
    const auto rows = all_rows(keys);
    const auto q = random_tensor(2, {static_cast<int64_t>(rows.size()), s.heads, s.width});
    Rig rig({Profile::kSm90, arith::best_isa()}, 2);
    const auto linear = attend(rig, s, q, rows, filled_cache(s, keys).view);
    for (const Layout layout : kPaged) {
      for (const int page : kPages) {
        for (const uint64_t order : {1, 2}) {
          const auto cache = filled_cache(s, keys, layout, page, order);
          const auto y = attend(rig, s, q, rows, cache.view);
          const auto what = name_of(layout, page);
          expect_same_bits(y.acc.values(), linear.acc.values(), what + ", acc");
          expect_same_bits(y.out.values(), linear.out.values(), what);
          expect_same_bits(y.lse.values(), linear.lse.values(), what + ", lse");
        }
      }
    }
  }
}

TEST(Attention, WhatLiesInUnusedSlotsChangesNothing) {
  const AttentionSetup s{4, 2, 32, 24, 0};
  const Keys keys(3, s, {70, 20});
  const std::vector<Query> rows{{0, 69}, {1, 19}};
  const auto q = random_tensor(4, {2, s.heads, s.width});
  Rig rig;
  const auto clean = filled_cache(s, keys, Layout::kPageKv, 16, 3);  // unused slots are NaN
  const auto expected = attend(rig, s, q, rows, clean.view);
  for (const uint16_t fill : {uint16_t{0}, uint16_t{0x7f80}, round_bf16(1e4f).bits}) {
    auto cache = filled_cache(s, keys, Layout::kPageKv, 16, 3);
    for (bf16& x : cache.memory) {
      if (x.bits == 0xffff) x.bits = fill;
    }
    const auto y = attend(rig, s, q, rows, cache.view);
    expect_same_bits(y.acc.values(), expected.acc.values(), "unused slots");
  }
}

// Rows of both sequences in one launch, through the slots a block table gives them.
TEST(KvWrite, FillsExactlyTheSlotsOfLiveRows) {
  const AttentionSetup s{4, 2, 32, 24, 0};
  const Keys keys(5, s, {37, 20});
  for (const Layout layout : kPaged) {
    for (const int page : kPages) {
      const auto expected = filled_cache(s, keys, layout, page, 9);
      auto cache = empty_cache(s, {37, 20}, layout, page, 9);
      const auto rows = all_rows(keys);
      const int64_t n = static_cast<int64_t>(rows.size()) + 1;
      Tensor<bf16> k({n, s.kv_heads, s.width}, 7), v({n, s.kv_heads, s.width}, 9);
      Tensor<int32_t> slot({n});
      for (int64_t r = 0; r + 1 < n; ++r) {
        const auto [seq, pos] = rows[static_cast<size_t>(r)];
        const bf16* from_k = keys.k[static_cast<size_t>(seq)].row(pos);
        const bf16* from_v = keys.v[static_cast<size_t>(seq)].row(pos);
        std::copy(from_k, from_k + k.row_size(), k.row(r));
        std::copy(from_v, from_v + v.row_size(), v.row(r));
        slot(r) = cache.table(seq, pos / page) * page + pos % page;
      }
      slot(n - 1) = -1;  // a padding row of NaN
      Rig rig({Profile::kSm90, arith::best_isa()}, 2);
      ASSERT_TRUE(
          ran(ops::kv_write(rig.ctx, kNowhere, {k.view(), v.view(), slot.view(), cache.view})));
      expect_same_bits(cache.memory, expected.memory, name_of(layout, page));
    }
  }
}

TEST(KvWrite, CopiesEveryBitPattern) {
  const AttentionSetup s{1, 1, 256, 24, 0};
  auto cache = empty_cache(s, {256}, Layout::kPageKv, 16, 1);
  Tensor<bf16> k({256, 1, 256}), v({256, 1, 256});
  Tensor<int32_t> slot({256});
  for (int r = 0; r < 256; ++r) {
    for (int i = 0; i < 256; ++i) {
      k(r, 0, i) = bf16{static_cast<uint16_t>(r * 256 + i)};
      v(r, 0, i) = bf16{static_cast<uint16_t>(~(r * 256 + i))};
    }
    slot(r) = cache.table(0, r / 16) * 16 + r % 16;
  }
  Rig rig;
  ASSERT_TRUE(ran(ops::kv_write(rig.ctx, kNowhere, {k.view(), v.view(), slot.view(), cache.view})));
  for (int r = 0; r < 256; ++r) {
    const int64_t at = cache.at(0, r);
    expect_same_bits(std::vector(cache.view.k + at, cache.view.k + at + 256),
                     std::vector(k.row(r), k.row(r) + 256), "k");
    expect_same_bits(std::vector(cache.view.v + at, cache.view.v + at + 256),
                     std::vector(v.row(r), v.row(r) + 256), "v");
  }
}

TEST(KvWrite, ZeroRowsRun) {
  const AttentionSetup s{1, 1, 16, 24, 0};
  auto cache = empty_cache(s, {5}, Layout::kPageKv, 16, 1);
  const auto before = cache.memory;
  const Tensor<bf16> none({0, 1, 16});
  const Tensor<int32_t> slot({0});
  Rig rig;
  ASSERT_TRUE(
      ran(ops::kv_write(rig.ctx, kNowhere, {none.view(), none.view(), slot.view(), cache.view})));
  expect_same_bits(cache.memory, before, "nothing written");
}

}  // namespace
}  // namespace sb::ops_testing
