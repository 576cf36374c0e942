#include "samebits/base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace sb {
namespace {

void expect_words(Philox4 got, const uint32_t (&want)[4]) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.v[i], want[i]) << "word " << i;
}

// The known-answer vectors that Random123 publishes for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  expect_words(philox4x32_10({{0, 0, 0, 0}}, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_words(philox4x32_10({{~0u, ~0u, ~0u, ~0u}}, ~uint64_t{0}),
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(
      philox4x32_10({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822),
      {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Philox, WorksAtCompileTime) {
  static_assert(philox4x32_10({{0, 0, 0, 0}}, 0).v[0] == 0x6627e8d5);
}

TEST(CounterRng, WalksTheBlocksInOrder) {
  CounterRng rng(7, 0x500000003);
  for (uint32_t block = 0; block < 3; ++block) {
    const Philox4 expect = philox4x32_10({{block, 0, 3, 5}}, 7);
    for (uint32_t word : expect.v) EXPECT_EQ(rng.next(), word);
  }
}

TEST(CounterRng, SeedsAndStreamsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) seen.insert(CounterRng(seed, stream).next64());
  }
  EXPECT_EQ(seen.size(), 64u);
}

TEST(CounterRng, RangesAreKept) {
  CounterRng rng(3);
  std::set<uint32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(rng.below(7));
    const float u = rng.uniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
  }
  EXPECT_EQ(seen, (std::set<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(rng.below(1), 0u);
}

}  // namespace
}  // namespace sb
