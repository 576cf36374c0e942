// Planted faults by name: what is accepted, where each one shows, and in which runs it acts.
#include "samebits/chain/fault.h"

#include <gtest/gtest.h>

#include <set>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::ran;
using chain_testing::refused;
using chain_testing::tiny;

constexpr int kLayers = 6;
constexpr ScheduleKind kKinds[] = {ScheduleKind::kTrain, ScheduleKind::kPrefill,
                                   ScheduleKind::kChunked, ScheduleKind::kDecode};

TEST(Fault, TheTableIsInTheOrderOfItsKindsWithOneNameEach) {
  std::set<std::string> names;
  for (size_t i = 0; i < all_faults().size(); ++i) {
    const FaultInfo& info = all_faults()[i];
    EXPECT_EQ(static_cast<size_t>(info.kind), i);
    EXPECT_EQ(&fault_info(info.kind), &info);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_NE(info.schedules, 0);
    for (const char* text : {info.summary, info.stands_for, info.position}) {
      EXPECT_FALSE(std::string(text).empty()) << info.name;
    }
    EXPECT_EQ(is_layer_tap(info.tap), info.layers != FaultLayers::kOutside) << info.name;
    EXPECT_TRUE(!info.layered || info.layers == FaultLayers::kAll) << info.name;
  }
  EXPECT_EQ(names.size(), 21u);
}

TEST(Fault, EveryNameIsUnderstood) {
  for (const FaultInfo& info : all_faults()) {
    const auto plain = parse_fault(info.name, kLayers);
    ASSERT_TRUE(ran(plain)) << info.name;
    EXPECT_EQ(plain->kind, info.kind);
    EXPECT_EQ(plain->layer, -1);  // every layer
    const auto layered = parse_fault(std::string(info.name) + ":layer=5", kLayers);
    if (info.layered) {
      ASSERT_TRUE(ran(layered));
      EXPECT_EQ(layered->layer, 5);
    } else {
      EXPECT_TRUE(refused(layered, "has no layer to choose", Code::kUsage));
    }
  }
}

TEST(Fault, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* text : {"", "softcap", "softcap-missing ", "Window-minus-1", ":layer=1"}) {
    const auto fault = parse_fault(text, kLayers);
    ASSERT_TRUE(refused(fault, "there is no fault of this name", Code::kUsage)) << text;
    for (const FaultInfo& info : all_faults()) {
      EXPECT_NE(fault.error().remedy.find(info.name), std::string::npos);
    }
  }
}

TEST(Fault, LayersOutsideTheModelAreRefused) {
  for (const char* option : {"layer=6", "layer=-1", "layer=", "layer=1x", "layer=99999999999",
                             "layer= 1", "Layer=1", "1", ""}) {
    EXPECT_TRUE(refused(parse_fault(std::string("gemm-leaf-order:") + option, kLayers),
                        "layer=0 … layer=5", Code::kUsage))
        << option;
  }
}

TEST(Fault, EachShowsAtItsBoundary) {
  auto boundary = [](const char* text) {
    return boundary_name(fault_boundary(*parse_fault(text, kLayers), tiny().arch));
  };
  EXPECT_EQ(boundary("softcap-missing"), "head.softcap");
  EXPECT_EQ(boundary("softcap-bf16"), "head.softcap");
  EXPECT_EQ(boundary("window-minus-1"), "layers.0.attn.ctx");
  EXPECT_EQ(boundary("window-plus-1"), "layers.0.attn.ctx");
  EXPECT_EQ(boundary("layer-scalar-dropped:layer=4"), "layers.4.out");
  EXPECT_EQ(boundary("embed-scale-unrounded"), "embed");
  EXPECT_EQ(boundary("gemm-leaf-order:layer=3"), "layers.3.mlp.down.acc");
  for (const char* cache : {"swapped-page", "stale-slot", "key-leak", "dropped-last-block"}) {
    EXPECT_EQ(boundary(cache), "layers.0.attn.ctx");
  }
  EXPECT_EQ(boundary("rope-swap"), "layers.0.attn.q_rope");
  EXPECT_EQ(boundary("p-rope-exponent"), "layers.5.attn.q_rope");
  EXPECT_EQ(boundary("p-rope-pairing"), "layers.5.attn.q_rope");
  EXPECT_EQ(boundary("v-after-k-norm"), "layers.5.attn.v_norm");
  EXPECT_EQ(boundary("norm-one-plus-w"), "layers.0.attn.norm");
  EXPECT_EQ(boundary("softcap-twice"), "head.softcap");
  EXPECT_EQ(boundary("softcap-x-tanh"), "head.softcap");
  EXPECT_EQ(boundary("temperature-twice"), "head.lse");
  EXPECT_EQ(boundary("row-shift"), "logp");
  EXPECT_EQ(boundary("gate-up-swapped:layer=2"), "layers.2.mlp.gelu");
}

TEST(Fault, OneOperatorOfOneLayerIsToldAndOnlyInItsSchedules) {
  const std::vector<Fault> faults{{FaultKind::kGemmLeafOrder, 3}, {FaultKind::kKeyLeak, 0}};
  for (const ScheduleKind kind : kKinds) {
    for (int t = 0; t < kNumTaps; ++t) {
      for (int layer = 0; layer < kLayers; ++layer) {
        Deviation expected = Deviation::kNone;
        if (Tap(t) == Tap::kMlpDownAcc && layer == 3) expected = Deviation::kLeafOrder;
        if (Tap(t) == Tap::kAttnCtx && kind == ScheduleKind::kTrain) expected = Deviation::kKeyLeak;
        EXPECT_EQ(deviation_at(faults, kind, Tap(t), layer), expected);
      }
    }
    EXPECT_EQ(has_fault(faults, kind, FaultKind::kKeyLeak), kind == ScheduleKind::kTrain);
    EXPECT_TRUE(has_fault(faults, kind, FaultKind::kGemmLeafOrder));
    EXPECT_FALSE(has_fault(faults, kind, FaultKind::kStaleSlot));
  }
}

TEST(Fault, WithoutALayerEveryLayersOperatorIsTold) {
  const std::vector<Fault> faults{*parse_fault("layer-scalar-dropped", kLayers)};
  for (int layer = 0; layer < kLayers; ++layer) {
    EXPECT_EQ(deviation_at(faults, ScheduleKind::kTrain, Tap::kLayerOut, layer),
              Deviation::kScalarDropped);
  }
  EXPECT_EQ(boundary_name(fault_boundary(faults[0], tiny().arch)), "layers.0.out");
}

TEST(Fault, AFaultInTheWiringOfOneLayerLeavesTheOthers) {
  const std::vector<Fault> faults{*parse_fault("gate-up-swapped:layer=2", kLayers)};
  for (int layer = 0; layer < kLayers; ++layer) {
    EXPECT_EQ(has_fault(faults, ScheduleKind::kTrain, FaultKind::kGateUpSwapped, layer),
              layer == 2);
  }
}

TEST(Fault, RotaryParametersDeviateAsDescribed) {
  const Architecture arch = *preset_architecture("gemma4-31b");
  const auto specs = [&](std::vector<Fault> faults) { return faulty_rope_specs(arch, faults); };
  const auto expect = [](const RopeSpec& s, double theta, int dim, int pairs) {
    EXPECT_EQ(s.theta, theta);
    EXPECT_EQ(s.exponent_dim, dim);
    EXPECT_EQ(s.pairs, pairs);
  };
  const RopeSpecs clean = specs({{FaultKind::kPRopePairing}});  // the operator's, not the table's
  expect(clean[0], 1e4, 256, 128);
  expect(clean[1], 1e6, 512, 64);
  const RopeSpecs swapped = specs({{FaultKind::kRopeSwap}});
  expect(swapped[0], 1e6, 256, 32);
  expect(swapped[1], 1e4, 512, 256);
  const RopeSpecs counted = specs({{FaultKind::kPRopeExponent}});
  expect(counted[0], 1e4, 256, 128);
  expect(counted[1], 1e6, 128, 64);
  // As published for a head of 512: 0.42170, 0.17783, 0.033376 against 0.031623, 0.001, 1.24e-6.
  const RopeTable right(clean, arch.max_position), wrong(counted, arch.max_position);
  const float want[][3] = {
      {16, 0.42170f, 0.031623f}, {32, 0.17783f, 0.001f}, {63, 0.033376f, 1.24e-6f}};
  for (const auto& [i, head, rotated] : want) {
    const auto at = static_cast<size_t>(i);
    // tolerance: published value, of five digits or fewer
    EXPECT_NEAR(right.inv_freq(LayerType::kGlobal)[at] / head, 1, 1e-4);
    // tolerance: published value, of five digits or fewer
    EXPECT_NEAR(wrong.inv_freq(LayerType::kGlobal)[at] / rotated, 1, 1e-2);
  }
}

TEST(Fault, WithoutFaultsNobodyIsToldAnything) {
  for (const ScheduleKind kind : kKinds) {
    for (int t = 0; t < kNumTaps; ++t) {
      EXPECT_EQ(deviation_at({}, kind, Tap(t), 0), Deviation::kNone);
    }
  }
}

}  // namespace
}  // namespace sb
