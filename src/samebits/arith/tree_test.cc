// The summation trees against their definition on index bits.
#include "samebits/arith/tree.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "samebits/base/digest.h"
#include "samebits/base/rng.h"

namespace sb::arith {
namespace {

// Literally: folding bit b adds v[i + 2^b] to v[i], for every i whose bits folded so far and b are
// 0.
float fold_bits(std::vector<float> v, std::initializer_list<int> order) {
  size_t folded = 0;
  for (int bit : order) {
    folded |= size_t{1} << bit;
    for (size_t i = 0; i < v.size(); ++i) {
      if ((i & folded) == 0) v[i] = v[i] + v[i + (size_t{1} << bit)];
    }
  }
  return v[0];
}

// Values whose sum depends on the order: both signs, forty binades.
std::vector<float> values(size_t n, uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> v(n);
  for (float& x : v) {
    const uint32_t u = rng.next();
    x = bits_float((u & 0x807fffffu) | ((107 + rng.below(40)) << 23));
  }
  return v;
}

template <float (*Tree)(float*)>
void expect_tree(size_t n, std::initializer_list<int> order) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> v = values(n, seed);
    const float want = fold_bits(v, order);
    ASSERT_EQ(float_bits(Tree(v.data())), float_bits(want)) << "seed " << seed;
  }
}

TEST(Tree, AdjacentIsFoldingFromBitZeroUp) {
  expect_tree<tree_adjacent<1>>(1, {});
  expect_tree<tree_adjacent<2>>(2, {0});
  expect_tree<tree_adjacent<8>>(8, {0, 1, 2});
  expect_tree<tree_adjacent<256>>(256, {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST(Tree, Tree64) { expect_tree<tree64>(64, {0, 3, 4, 5, 1, 2}); }

TEST(Tree, Tree256) { expect_tree<tree256>(256, {0, 3, 4, 5, 6, 7, 1, 2}); }

TEST(Tree, TheOrdersDiffer) {
  int different = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> a = values(64, seed), b = a;
    different += float_bits(tree64(a.data())) != float_bits(tree_adjacent<64>(b.data()));
  }
  EXPECT_GT(different, 50);
}

TEST(Tree, NegativeZerosSurviveAndNanSpreads) {
  std::vector<float> v(64, -0.0f);
  EXPECT_EQ(float_bits(tree64(v.data())), 0x80000000u);
  v.assign(256, 1.0f);
  v[77] = bits_float(kCanonicalNan);
  EXPECT_TRUE(is_nan_bits(float_bits(tree256(v.data()))));
}

}  // namespace
}  // namespace sb::arith
