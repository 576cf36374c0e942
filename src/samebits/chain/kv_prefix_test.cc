// Prefix reuse and weight updates: what may be shared, what is copied, and that keys of another
// owner or of other weights never reach a query.
#include <gtest/gtest.h>

#include <algorithm>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::expect_same_bits;
using chain_testing::OpenSession;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::tiny;

constexpr int kSliding = static_cast<int>(LayerType::kSliding);
constexpr int kGlobal = static_cast<int>(LayerType::kGlobal);

std::unique_ptr<KvCache> make(std::array<int64_t, 2> pages = {20, 20}, bool free_window = true) {
  KvCacheOptions o;
  o.page_size = {4, 8};
  o.num_pages = pages;
  o.order_seed = 5;
  o.free_window = free_window;
  const Architecture& arch = tiny().arch;  // a window of 24
  auto cache = KvCache::create(cpu(), arch, *plan_rank(arch, 0, 1), 7, o);
  EXPECT_TRUE(ran(cache));
  return std::move(*cache);
}

KvCache::Handle open(KvCache& cache, const std::string& id, int64_t length = 0) {
  const auto h = *cache.open(id);
  EXPECT_TRUE(ran(cache.extend(h, length)));
  return h;
}

std::vector<int32_t> table_of(const KvCache& cache, KvCache::Handle h, int group) {
  HostBatch batch;
  cache.describe(h, 0, batch);
  return batch.table[group];
}

std::vector<unsigned char> page_bytes(const KvView& view, int32_t page) {
  std::vector<unsigned char> bytes(static_cast<size_t>(view.page_stride * 2));
  cpu().copy_out(bytes.data(), view.k + page * view.page_stride, bytes.size());
  return bytes;
}

TEST(KvCache, AdoptSharesFullPagesAndCopiesAPartialOne) {
  const auto cache = make();
  const auto a = open(*cache, "a", 10);
  const auto from = table_of(*cache, a, kGlobal);  // 8 + 2 tokens
  const KvView view = cache->layer_view(5);
  for (int32_t page : from) {
    const std::vector<unsigned char> mark(static_cast<size_t>(view.page_stride * 2),
                                          static_cast<unsigned char>(0x20 + page));
    cpu().copy_in(view.k + page * view.page_stride, mark.data(), mark.size());
  }
  ASSERT_TRUE(ran(cache->publish(a, "p", 10)));
  EXPECT_TRUE(cache->knows("p"));
  const auto b = open(*cache, "b");
  ASSERT_TRUE(ran(cache->adopt(b, "p", 10)));
  EXPECT_EQ(cache->length(b), 10);
  const auto to = table_of(*cache, b, kGlobal);
  ASSERT_EQ(to.size(), 2u);
  EXPECT_EQ(to[0], from[0]) << "full: shared";
  EXPECT_NE(to[1], from[1]) << "partial: copied";
  EXPECT_EQ(page_bytes(view, to[1]), page_bytes(view, from[1]));
  EXPECT_EQ(cache->pages_in_use(LayerType::kGlobal), 3);
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 4);  // 4 + 4 + 2 tokens
  EXPECT_TRUE(ran(cache->check(b, 0)));
  ASSERT_TRUE(ran(cache->extend(b, 5)));
  EXPECT_TRUE(ran(cache->check(b, 5))) << "it writes behind the prefix, in its own pages";
}

TEST(KvCache, PublishedPagesOutliveTheirPublisherUntilForgotten) {
  const auto cache = make();
  const auto a = open(*cache, "a", 16);
  ASSERT_TRUE(ran(cache->publish(a, "p", 16)));
  cache->close(a);
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 4);
  const auto b = open(*cache, "b");
  ASSERT_TRUE(ran(cache->adopt(b, "p", 16)));
  cache->forget("p");
  EXPECT_FALSE(cache->knows("p"));
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 4) << "b still reads them";
  EXPECT_TRUE(ran(cache->check(b, 0)));
  cache->close(b);
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 0);
  EXPECT_EQ(cache->pages_in_use(LayerType::kGlobal), 0);
  cache->forget("p");  // nothing to forget
}

TEST(KvCache, APublisherMayReadItsPrefixButNotWriteIt) {
  const auto cache = make();
  const auto a = open(*cache, "a", 16);
  ASSERT_TRUE(ran(cache->publish(a, "full pages", 16)));
  ASSERT_TRUE(ran(cache->extend(a, 3)));
  EXPECT_TRUE(ran(cache->check(a, 3)));
  ASSERT_TRUE(ran(cache->publish(a, "a partial page", 19)));
  ASSERT_TRUE(ran(cache->extend(a, 1)));
  EXPECT_TRUE(refused(cache->check(a, 1), "belongs to a published prefix"));
}

TEST(KvCache, PrefixesOfOneConversationGrowAndAllStayReadable) {
  const auto cache = make();
  const auto a = open(*cache, "turn 1", 8);
  ASSERT_TRUE(ran(cache->publish(a, "p8", 8)));
  const auto b = open(*cache, "turn 2");
  ASSERT_TRUE(ran(cache->adopt(b, "p8", 8)));
  ASSERT_TRUE(ran(cache->extend(b, 8)));
  ASSERT_TRUE(ran(cache->publish(b, "p16", 16)));
  const auto c = open(*cache, "turn 3"), d = open(*cache, "again turn 2");
  ASSERT_TRUE(ran(cache->adopt(c, "p16", 16)));
  ASSERT_TRUE(ran(cache->adopt(d, "p8", 8)));
  for (const auto h : {c, d}) {
    ASSERT_TRUE(ran(cache->extend(h, 4)));
    EXPECT_TRUE(ran(cache->check(h, 4)));
  }
  for (const auto h : {a, b, c, d}) cache->close(h);
  cache->forget("p8");
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 4) << "p16 holds the pages of p8 too";
  cache->forget("p16");
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 0);
}

TEST(KvCache, ARefusedAdoptLeavesTheSequenceEmpty) {
  // 40 tokens went through; keys below 16 fell out of the window before the prefix was published.
  const auto cache = make();
  const auto a = open(*cache, "a", 40);
  cache->trim(a);
  ASSERT_TRUE(ran(cache->publish(a, "p", 40)));
  const auto b = open(*cache, "b");
  const int64_t used = cache->pages_in_use(LayerType::kSliding);
  // A query at 38 sees key 15.
  EXPECT_TRUE(refused(cache->adopt(b, "p", 38), "a page inside the window was given back"));
  EXPECT_TRUE(refused(cache->adopt(b, "p", 41), "the prefix holds 40"));
  EXPECT_TRUE(refused(cache->adopt(b, "q", 8), "no such prefix is cached"));
  EXPECT_TRUE(refused(cache->adopt(b, "p", -1), "no fewer than 0 tokens"));
  EXPECT_EQ(cache->length(b), 0);
  EXPECT_TRUE(table_of(*cache, b, kSliding).empty());
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), used);
  EXPECT_TRUE(ran(cache->adopt(b, "p", 39))) << "a query at 39 sees keys from 16 on";
  const auto table = table_of(*cache, b, kSliding);
  for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i] == kPoisonPage, i < 4);
  EXPECT_TRUE(refused(cache->adopt(b, "p", 39), "has tokens already"));
}

TEST(KvCache, AdoptWithoutRoomForTheCopyTakesNothing) {
  const auto cache = make({20, 2});
  const auto a = open(*cache, "a", 10);
  ASSERT_TRUE(ran(cache->publish(a, "p", 10)));
  const auto b = open(*cache, "b");
  EXPECT_TRUE(refused(cache->adopt(b, "p", 10), "1 pages of 8 tokens lack", Code::kEnvironment));
  EXPECT_EQ(cache->pages_in_use(LayerType::kSliding), 3);
  EXPECT_TRUE(ran(cache->adopt(b, "p", 8))) << "full pages need no copy";
}

TEST(KvCache, WhatIsNotThereIsNotPublished) {
  const auto cache = make();
  const auto a = open(*cache, "a", 40);
  EXPECT_TRUE(refused(cache->publish(a, "p", 41), "the sequence holds 40"));
  EXPECT_TRUE(refused(cache->publish(a, "p", -1), "the sequence holds 40"));
  cache->trim(a);
  EXPECT_TRUE(refused(cache->publish(a, "p", 38), "a page inside the window was given back"));
  EXPECT_FALSE(cache->knows("p"));
  ASSERT_TRUE(ran(cache->publish(a, "p", 40)));
  EXPECT_TRUE(refused(cache->publish(a, "p", 40), "published already"));
}

TEST(KvCache, WhereWindowPagesAreKeptAPrefixHandsOverAllOfThem) {
  const auto cache = make({20, 20}, /*free_window=*/false);
  const auto a = open(*cache, "a", 40);
  cache->trim(a);
  ASSERT_TRUE(ran(cache->publish(a, "p", 40)));
  const auto b = open(*cache, "b");
  ASSERT_TRUE(ran(cache->adopt(b, "p", 40)));
  EXPECT_EQ(table_of(*cache, b, kSliding), table_of(*cache, a, kSliding));
}

TEST(KvCache, KeysOfOtherWeightsAreRefusedEverywhere) {
  const auto cache = make();
  const auto a = open(*cache, "a", 16), late = open(*cache, "late", 10);
  ASSERT_TRUE(ran(cache->publish(a, "p", 16)));
  cache->set_epoch(8);
  EXPECT_EQ(cache->layer_view(0).epoch, 8u);
  ASSERT_TRUE(ran(cache->extend(late, 1)));
  EXPECT_TRUE(refused(cache->check(late, 1), "made with other weights"));
  // Published under the new weights, a copied partial page would pass for one of theirs.
  EXPECT_TRUE(refused(cache->publish(late, "old keys", 2), "made with other weights"));
  const auto b = open(*cache, "b");
  EXPECT_TRUE(refused(cache->adopt(b, "p", 16), "cached with other weights"));
  ASSERT_TRUE(ran(cache->extend(b, 16))) << "prefilled again instead";
  EXPECT_TRUE(ran(cache->check(b, 16)));
}

// The second request gets the first one's pages, and a prefix that ends inside its window.
TEST(KvCache, ARequestInAnothersSlotsBehindAPrefixHasTheBitsOfTraining) {
  const std::vector<Sequence> rows{row("first", 60, 1, 11), row("second", 60, 30, 12)};
  const Logprobs want = score(rows, run_of("train")).logprobs;
  for (const int64_t prefix : {9, 16, 23, 29}) {
    SessionOptions options;
    options.cache.page_size = {8, 16};
    OpenSession s(options);
    ASSERT_TRUE(ran(s->make_cache({16, 9})));  // too few for both rows at a time
    KvCache& cache = s->cache();
    const auto p = *cache.open("prefix");
    ASSERT_TRUE(ran(s.feed(rows, 1, p, 0, prefix)));
    ASSERT_TRUE(ran(cache.publish(p, "p", prefix)));
    cache.close(p);
    const auto first = *cache.open("first");
    ASSERT_TRUE(ran(s.feed(rows, 0, first, 0, 60)));
    const auto used = table_of(cache, first, kGlobal);
    cache.close(first);
    const auto second = *cache.open("second");
    ASSERT_TRUE(ran(cache.adopt(second, "p", prefix)));
    const auto got = s.feed(rows, 1, second, prefix, 60 - prefix);
    ASSERT_TRUE(ran(got));
    const auto now = table_of(cache, second, kGlobal);
    EXPECT_NE(std::find(used.begin(), used.end(), now.back()), used.end()) << "a slot is reused";
    expect_same_bits(*got, want[1], "prefix of " + std::to_string(prefix));
  }
}

TEST(KvCache, AWeightUpdateEndsTheLifeOfACachedPrefix) {
  const std::vector<Sequence> rows{row("r", 40, 20, 13)};
  OpenSession s;
  ASSERT_TRUE(ran(s->make_cache({12, 12})));
  KvCache& cache = s->cache();
  const auto h = *cache.open("prefix");
  ASSERT_TRUE(ran(s.feed(rows, 0, h, 0, 19)));
  ASSERT_TRUE(ran(cache.publish(h, "p", 19)));
  cache.set_epoch(tiny().epoch + 1);
  EXPECT_TRUE(refused(s.feed(rows, 0, h, 19, 1), "made with other weights"));
  const auto r = *cache.open("r");
  EXPECT_TRUE(refused(cache.adopt(r, "p", 19), "cached with other weights"));
  // Fresh pages do not help a chain that still runs the old weights.
  EXPECT_TRUE(refused(s.feed(rows, 0, r, 0, 19), "the cache holds entries of other weights"));
  cache.set_epoch(tiny().epoch);
  const auto again = *cache.open("again");
  ASSERT_TRUE(ran(cache.adopt(again, "p", 19)));
  const auto got = s.feed(rows, 0, again, 19, 21);
  ASSERT_TRUE(ran(got));
  expect_same_bits(*got, score(rows, run_of("train")).logprobs[0], "the same weights again");
}

}  // namespace
}  // namespace sb
