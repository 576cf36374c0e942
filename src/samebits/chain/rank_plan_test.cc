// Rank plans: the ranks' parts cover a model exactly once, KV heads are copied where there are more
// ranks than heads, and what does not divide is refused before anything runs.
#include "samebits/chain/rank_plan.h"

#include <gtest/gtest.h>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::ran;
using chain_testing::refused;

constexpr int kSizes[] = {1, 2, 4, 8};

std::vector<RankPlan> plans(const Architecture& arch, int size) {
  std::vector<RankPlan> all;
  for (int r = 0; r < size; ++r) all.push_back(*plan_rank(arch, r, size));
  return all;
}

TEST(RankPlan, PartsCoverTheModelOnceAndInOrder) {
  for (const char* preset : {"tiny", "gemma4-31b"}) {
    const Architecture arch = *preset_architecture(preset);
    for (int size : kSizes) {
      int64_t head = 0, inter = 0, shard = 0, vocab = 0;
      for (const RankPlan& p : plans(arch, size)) {
        EXPECT_EQ(p.size, size);
        EXPECT_EQ(p.head_begin, head);
        EXPECT_EQ(p.inter_begin, inter);
        EXPECT_EQ(p.shard_begin, shard);
        EXPECT_EQ(p.vocab_begin, vocab);
        head += p.heads, inter += p.inter, shard += p.shards, vocab += p.vocab_rows;
      }
      EXPECT_EQ(head, arch.num_heads);
      EXPECT_EQ(inter, arch.intermediate);
      EXPECT_EQ(shard, 8);
      EXPECT_EQ(vocab, arch.vocab);
    }
  }
}

TEST(RankPlan, EveryKvHeadIsReportedByOneRank) {
  for (const char* preset : {"tiny", "gemma4-31b"}) {
    const Architecture arch = *preset_architecture(preset);
    for (int size : kSizes) {
      for (const LayerType type : {LayerType::kSliding, LayerType::kGlobal}) {
        const int kv_heads = arch.attention(type).num_kv_heads;
        std::vector<int> reported(static_cast<size_t>(kv_heads), 0);
        for (const RankPlan& p : plans(arch, size)) {
          const KvShare& share = p.kv(type);
          for (int h = 0; h < share.heads; ++h) {
            reported[static_cast<size_t>(share.begin + h)] += share.primary;
          }
          // The rank's query heads read these KV heads and no others.
          const int group = arch.num_heads / kv_heads;
          EXPECT_EQ(p.head_begin / group, share.begin);
          EXPECT_EQ((p.head_begin + p.heads - 1) / group, share.begin + share.heads - 1);
        }
        EXPECT_EQ(reported, std::vector<int>(static_cast<size_t>(kv_heads), 1));
      }
    }
  }
}

TEST(RankPlan, FourGlobalHeadsOnEightRanksAreHeldTwice) {
  const auto all = plans(*preset_architecture("gemma4-31b"), 8);
  for (int r = 0; r < 8; ++r) {
    EXPECT_EQ(all[static_cast<size_t>(r)].global.begin, r / 2);
    EXPECT_EQ(all[static_cast<size_t>(r)].global.heads, 1);
    EXPECT_EQ(all[static_cast<size_t>(r)].global.primary, r % 2 == 0);
    EXPECT_EQ(all[static_cast<size_t>(r)].sliding.heads, 2);
  }
}

TEST(RankPlan, RanksBehindTheVocabularyHaveNoColumns) {
  const auto all = plans(*preset_architecture("tiny"), 8);  // 2500 ids in shards of 512
  EXPECT_EQ(all[4].vocab_rows, 2500 - 4 * 512);
  for (size_t r : {5, 6, 7}) EXPECT_EQ(all[r].vocab_rows, 0);
}

TEST(RankPlan, SizesThatAreNotDeclaredAreRefused) {
  const Architecture arch = *preset_architecture("tiny");
  for (int size : {-1, 0, 3, 5, 6, 7, 9, 16}) {
    EXPECT_TRUE(refused(plan_rank(arch, 0, size), "declared for 1, 2, 4 and 8 ranks")) << size;
  }
}

TEST(RankPlan, WhatDoesNotDivideIsRefusedWithEveryReason) {
  Architecture arch = *preset_architecture("tiny");
  arch.num_heads = 12;
  arch.sliding.num_kv_heads = 3;
  arch.global.num_kv_heads = 6;
  arch.global.head_dim = 36;
  arch.intermediate = 200;
  const auto plan = plan_rank(arch, 0, 8);
  EXPECT_TRUE(refused(plan, "12 query heads do not divide by 8"));
  EXPECT_TRUE(refused(plan, "3 sliding KV heads neither divide by 8 nor replicate evenly"));
  EXPECT_TRUE(refused(plan, "6 global KV heads neither divide by 8 nor replicate evenly"));
  EXPECT_TRUE(refused(plan, "o of sliding layers has K = 192, not a multiple of 128"));
  EXPECT_TRUE(refused(plan, "o of global layers has K = 432, not a multiple of 128"));
  EXPECT_TRUE(refused(plan, "down has K = 200, not a multiple of 128"));
  EXPECT_TRUE(ran(plan_rank(arch, 0, 1))) << "one rank runs any of it";
}

}  // namespace
}  // namespace sb
