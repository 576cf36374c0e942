// Planted faults by name: what is accepted, where each one shows, and in which runs it acts.
#include "samebits/chain/fault.h"

#include <gtest/gtest.h>

#include <set>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::ran;
using chain_testing::refused;

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
    EXPECT_FALSE(std::string(info.summary).empty());
  }
  EXPECT_EQ(names.size(), 11u);
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
    return boundary_name(fault_boundary(*parse_fault(text, kLayers)));
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
  EXPECT_EQ(boundary_name(fault_boundary(faults[0])), "layers.0.out");
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
