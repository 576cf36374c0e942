// Boundary names: one list, one spelling each, in causal order.
#include "samebits/contract/boundary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace sb {
namespace {

Architecture six_layers() {
  Architecture arch;
  arch.layers.assign(6, LayerType::kSliding);
  arch.layers[5] = LayerType::kGlobal;
  return arch;
}

TEST(Boundary, ASlidingLayerHas22AndAGlobalOne21) {
  std::map<int, int> count;
  for (const Boundary b : all_boundaries(six_layers(), false)) ++count[b.layer];
  for (int layer = 0; layer < 5; ++layer) EXPECT_EQ(count[layer], 22);
  EXPECT_EQ(count[5], 21);
  EXPECT_EQ(count[-1], 6);  // embed, final_norm, three of the head, logp
}

TEST(Boundary, AccValuesExistForEveryMatrixProductAndAttention) {
  std::map<int, int> count;
  for (const Boundary b : all_boundaries(six_layers(), true)) count[b.layer] += is_acc(b.tap);
  EXPECT_EQ(count[0], 8);  // q, k, v, ctx, o, gate, up, down
  EXPECT_EQ(count[5], 7);
  EXPECT_EQ(count[-1], 0);
}

TEST(Boundary, GlobalLayersHaveNoV) {
  for (const Boundary b : all_boundaries(six_layers(), true)) {
    EXPECT_FALSE(b.layer == 5 && (b.tap == Tap::kAttnV || b.tap == Tap::kAttnVAcc));
  }
  const auto all = all_boundaries(six_layers(), false);
  EXPECT_NE(std::find(all.begin(), all.end(), Boundary{Tap::kAttnVNorm, 5}), all.end());
}

TEST(Boundary, NamesReadBackToTheSameBoundary) {
  std::set<std::string> names;
  for (const Boundary b : all_boundaries(six_layers(), true)) {
    const auto name = boundary_name(b);
    EXPECT_TRUE(names.insert(name).second) << name << " names two boundaries";
    const auto back = parse_boundary(name);
    ASSERT_TRUE(back.has_value()) << name;
    EXPECT_EQ(*back, b) << name;
  }
  EXPECT_EQ(boundary_name({Tap::kMlpDownAcc, 3}), "layers.3.mlp.down.acc");
  EXPECT_EQ(boundary_name({Tap::kLayerOut, 59}), "layers.59.out");
  EXPECT_EQ(boundary_name({Tap::kHeadLogit, -1}), "head.logit");
}

TEST(Boundary, OtherSpellingsAreNoNames) {
  for (const char* name : {"",
                           "layers",
                           "layers.",
                           "layers.3",
                           "layers.3.",
                           "layers.3.embed",
                           "layers.3.attn.zzz",
                           "layers.-1.out",
                           "layers.-0.out",
                           "layers.03.out",
                           "layers.+3.out",
                           "layers. 3.out",
                           "layers.99999999999.out",
                           "layers.3out",
                           "attn.q",
                           "out",
                           "Embed",
                           "embed ",
                           "logp.acc",
                           "layers.3.out.acc"}) {
    EXPECT_FALSE(parse_boundary(name).has_value()) << name;
  }
}

TEST(Boundary, TheOrderIsThatOfTheListAndCausal) {
  const auto all = all_boundaries(six_layers(), true);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(boundary_order(all[i - 1], 6), boundary_order(all[i], 6)) << boundary_name(all[i]);
  }
  EXPECT_LT(boundary_order({Tap::kAttnKAcc, 2}, 6), boundary_order({Tap::kAttnK, 2}, 6));
  EXPECT_LT(boundary_order({Tap::kLayerOut, 2}, 6), boundary_order({Tap::kAttnNorm, 3}, 6));
}

TEST(Boundary, TapsAreOfALayerOrOfTheModel) {
  int outside = 0;
  for (int t = 0; t < kNumTaps; ++t) outside += !is_layer_tap(static_cast<Tap>(t));
  EXPECT_EQ(outside, 6);
  EXPECT_TRUE(is_acc(Tap::kAttnCtxAcc));
  EXPECT_FALSE(is_acc(Tap::kAttnCtx));
}

}  // namespace
}  // namespace sb
