// The paged cache: pages in any order and either layout, room, windows and tables. Bits that do not
// depend on any of it are checked where rows run: score_test.cc.
#include "samebits/chain/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;

constexpr int kSliding = static_cast<int>(LayerType::kSliding);
constexpr int kGlobal = static_cast<int>(LayerType::kGlobal);

const Architecture& arch() {
  static const Architecture a = *preset_architecture("tiny");  // a window of 24
  return a;
}

KvCacheOptions small(int page = 4, int64_t pages = 20) {
  KvCacheOptions o;
  o.page_size = {page, page};
  o.num_pages = {pages, pages};
  return o;
}

std::unique_ptr<KvCache> make(const KvCacheOptions& options, int rank = 0, int ranks = 1) {
  auto cache = KvCache::create(cpu(), arch(), *plan_rank(arch(), rank, ranks), 7, options);
  EXPECT_TRUE(ran(cache));
  return std::move(*cache);
}

std::vector<int32_t> table_of(const KvCache& cache, KvCache::Handle h, int group) {
  HostBatch batch;
  cache.describe(h, 0, batch);
  return batch.table[group];
}

TEST(KvCache, PagesAreHandedOutAscendingOrInASeededOrder) {
  std::vector<int32_t> ascending(20);
  std::iota(ascending.begin(), ascending.end(), 0);
  std::vector<std::vector<int32_t>> orders;
  for (uint64_t seed : {0, 7, 7, 8}) {
    KvCacheOptions options = small();
    options.order_seed = seed;
    const auto cache = make(options);
    const auto h = *cache->open("r");
    ASSERT_TRUE(ran(cache->extend(h, 80)));
    orders.push_back(table_of(*cache, h, kGlobal));
    auto sorted = orders.back();
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, ascending) << "every page once";
    if (seed) {
      EXPECT_NE(table_of(*cache, h, kSliding), orders.back()) << "an order a group";
    }
  }
  EXPECT_EQ(orders[0], ascending);
  EXPECT_NE(orders[1], ascending);
  EXPECT_EQ(orders[1], orders[2]);
  EXPECT_NE(orders[1], orders[3]);
}

TEST(KvCache, BothLayoutsPlaceKeysAndValuesWhereTheirNamesSay) {
  KvCacheOptions options = small(16, 3);
  const int layers[] = {0, 5};  // sliding and global
  for (int layer : layers) {
    const auto& spec = arch().attention(layer);
    const int64_t heads = spec.num_kv_heads, d = spec.head_dim;
    options.layout = KvLayout::kSplit;  // [pages, 2, page, heads, D]
    const auto split_cache = make(options);
    const KvView split = split_cache->layer_view(layer);
    EXPECT_EQ(split.page_stride, 2 * 16 * heads * d);
    EXPECT_EQ(split.token_stride, heads * d);
    EXPECT_EQ(split.head_stride, d);
    EXPECT_EQ(split.v - split.k, 16 * heads * d);
    options.layout = KvLayout::kInterleaved;  // [pages, heads, page, 2·D]
    const auto cache = make(options);
    const KvView inter = cache->layer_view(layer);
    EXPECT_EQ(inter.page_stride, 2 * 16 * heads * d);
    EXPECT_EQ(inter.token_stride, 2 * d);
    EXPECT_EQ(inter.head_stride, 16 * 2 * d);
    EXPECT_EQ(inter.v - inter.k, d);
    for (const KvView& v : {split, inter}) {
      EXPECT_EQ(v.kind, KvView::kPaged);
      EXPECT_EQ(v.page_size, 16);
      EXPECT_EQ(v.num_pages, 3);
      EXPECT_EQ(v.epoch, 7u);
    }
  }
}

TEST(KvCache, ARankHoldsItsOwnKvHeads) {
  const auto cache = make(small(), 3, 8);
  EXPECT_EQ(cache->layer_view(0).token_stride, 1 * arch().sliding.head_dim);
  EXPECT_EQ(cache->layer_view(5).token_stride, 1 * arch().global.head_dim);
}

TEST(KvCache, ImpossibleSizesAreRefused) {
  const RankPlan plan = *plan_rank(arch(), 0, 1);
  KvCacheOptions no_pages = small(), no_tokens = small(), too_many = small();
  no_pages.num_pages[kGlobal] = 0;
  no_tokens.page_size[kSliding] = 0;
  too_many.page_size[kGlobal] = 1 << 16;
  too_many.num_pages[kGlobal] = 1 << 15;
  EXPECT_TRUE(refused(KvCache::create(cpu(), arch(), plan, 7, no_pages), "0 pages"));
  EXPECT_TRUE(refused(KvCache::create(cpu(), arch(), plan, 7, no_tokens), "page size 0"));
  EXPECT_TRUE(refused(KvCache::create(cpu(), arch(), plan, 7, too_many), "do not fit in 32 bits"));
}

TEST(KvCache, WithoutRoomNothingIsTakenAndTheMessageCounts) {
  KvCacheOptions options = small();
  options.num_pages = {20, 3};
  const auto cache = make(options);
  const auto h = *cache->open("r");
  ASSERT_TRUE(ran(cache->extend(h, 5)));
  EXPECT_TRUE(refused(cache->extend(h, 12),
                      "2 pages of 4 tokens lack for global layers: 1 of 3 are free",
                      Code::kEnvironment));
  EXPECT_EQ(cache->length(h), 5);
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 2);
  EXPECT_EQ(cache->pages_in_use(LayerType::kGlobal), 2);
  EXPECT_TRUE(ran(cache->extend(h, 7)));
}

TEST(KvCache, ClosedSequencesGiveBackCleanPages) {
  const auto cache = make(small());
  const auto h = *cache->open("r");
  ASSERT_TRUE(ran(cache->extend(h, 9)));
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 3);
  const KvView view = cache->layer_view(2);
  std::vector<unsigned char> bytes(static_cast<size_t>(3 * view.page_stride * 2), 0x11);
  cpu().copy_in(view.k, bytes.data(), bytes.size());
  cache->close(h);
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 0);
  EXPECT_EQ(cache->pages_in_use(LayerType::kGlobal), 0);
  cpu().copy_out(bytes.data(), view.k, bytes.size());
  EXPECT_EQ(bytes, std::vector<unsigned char>(bytes.size(), 0xff)) << "a past request's keys";
}

TEST(KvCache, OneOwnerIsOpenOnce) {
  const auto cache = make(small());
  const auto h = *cache->open("r");
  EXPECT_TRUE(refused(cache->open("r"), "it is open already"));
  cache->close(h);
  EXPECT_TRUE(ran(cache->open("r")));
}

TEST(KvCache, TrimFreesExactlyThePagesNoLaterQuerySees) {
  for (const bool keep : {false, true}) {
    KvCacheOptions options = small();
    options.free_window = !keep;
    const auto cache = make(options);
    const auto h = *cache->open("r");
    for (int64_t n = 1; n <= 70; ++n) {
      ASSERT_TRUE(ran(cache->extend(h, 1)));
      ASSERT_TRUE(ran(cache->check(h, 1)));
      cache->trim(h);
      const int64_t pages = (n + 3) / 4;
      // The next query sits at n and sees keys n − 23 … n.
      const int64_t gone = keep ? 0 : std::max<int64_t>(0, n - 23) / 4;
      EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), pages - gone) << n;
      EXPECT_EQ(cache->pages_in_use(LayerType::kGlobal), pages) << n;
      const auto table = table_of(*cache, h, kSliding);
      for (int64_t i = 0; i < pages; ++i) {
        EXPECT_EQ(table[static_cast<size_t>(i)] == kPoisonPage, i < gone) << n;
      }
    }
  }
}

TEST(KvCache, AQueryThatNeedsATrimmedPageIsRefused) {
  const auto cache = make(small());
  const auto h = *cache->open("r");
  ASSERT_TRUE(ran(cache->extend(h, 40)));
  ASSERT_TRUE(ran(cache->check(h, 40)));
  cache->trim(h);  // keys below 16 are gone
  EXPECT_TRUE(ran(cache->check(h, 1)));
  EXPECT_TRUE(refused(cache->check(h, 2), "was given back"));  // the query at 38 sees key 15
}

TEST(KvCache, DecodeInAsFewPagesAsTheWindowNeedsHasTheSameBits) {
  const std::vector<Sequence> rows{row("r", 150, 3, 5)};
  const Logprobs want = score(rows, run_of("train")).logprobs;
  RunOptions run = run_of("decode");
  run.session.cache.page_size = {8, 16};
  run.session.cache.num_pages = {5, 0};  // 24 keys lie in at most 4 pages; one more joins
  expect_same(score(rows, run).logprobs, want, "5 pages");
  run.session.cache.num_pages = {0, 0};
  run.session.cache.free_window = false;
  expect_same(score(rows, run).logprobs, want, "all pages kept");
}

TEST(KvCache, TablesWidenWithPoisonAndSlotsFollowThePages) {
  KvCacheOptions options = small();
  options.order_seed = 3;
  const auto cache = make(options);
  HostBatch batch;
  const int64_t lengths[] = {5, 13, 2};
  std::vector<KvCache::Handle> handles;
  for (int i = 0; i < 3; ++i) {
    handles.push_back(*cache->open("row " + std::to_string(i)));
    ASSERT_TRUE(ran(cache->extend(handles.back(), lengths[i])));
    cache->describe(handles.back(), 2, batch);
  }
  for (int g = 0; g < 2; ++g) {
    ASSERT_EQ(batch.table_columns[g], 4);
    ASSERT_EQ(batch.table[g].size(), 12u);
    ASSERT_EQ(batch.slot[g].size(), 6u);
    for (int i = 0; i < 3; ++i) {
      const auto own = table_of(*cache, handles[static_cast<size_t>(i)], g);
      for (int c = 0; c < 4; ++c) {
        const auto at = static_cast<size_t>(c);
        EXPECT_EQ(batch.table[g][static_cast<size_t>(i * 4 + c)],
                  at < own.size() ? own[at] : kPoisonPage);
      }
      for (int k = 0; k < 2; ++k) {
        const int64_t p = lengths[i] - 2 + k;
        EXPECT_EQ(batch.slot[g][static_cast<size_t>(2 * i + k)],
                  own[static_cast<size_t>(p / 4)] * 4 + p % 4);
      }
    }
  }
}

}  // namespace
}  // namespace sb
