// Rotary tables on a device: the blocks are the model's, and grow when a longer row comes.
#include "samebits/chain/rope_cache.h"

#include <gtest/gtest.h>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same_bits;

void expect_blocks(const View& view, const RopeTable& table, LayerType type, int64_t blocks) {
  ASSERT_EQ(view.shape[0], blocks);
  std::vector<float> values(static_cast<size_t>(view.numel()));
  cpu().copy_out(values.data(), view.ptr, static_cast<size_t>(view.bytes()));
  std::vector<float> expected;
  for (int64_t b = 0; b < blocks; ++b) {
    const auto& block = table.block(type, b).values;
    expected.insert(expected.end(), block.begin(), block.end());
  }
  expect_same_bits(values, expected, layer_type_name(type));
}

TEST(RopeCache, BlocksAreTheTablesAndGrowOnDemand) {
  const Architecture arch = *preset_architecture("tiny");
  const RopeTable table(arch);
  RopeCache cache(cpu(), arch);
  for (const LayerType type : {LayerType::kSliding, LayerType::kGlobal}) {
    const View one = *cache.get(type, 1);
    EXPECT_EQ(one.shape[3], arch.attention(type).rotary_pairs);
    expect_blocks(one, table, type, 1);
    EXPECT_EQ(cache.get(type, 1024)->ptr, one.ptr);
    expect_blocks(*cache.get(type, 1025), table, type, 2);
    EXPECT_EQ(cache.get(type, 5)->shape[0], 2) << "a table does not shrink";
  }
}

}  // namespace
}  // namespace sb
