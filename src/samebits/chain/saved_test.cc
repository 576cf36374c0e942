// What a training step keeps for its backward pass, and that recomputing a layer from its kept
// input gives back every bit that keeping all would have held.
#include "samebits/chain/saved.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebits/chain/session.h"
#include "samebits/chain/step_builder.h"
#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::tiny;

class SavedTest : public testing::Test {
 protected:
  void SetUp() override {
    sequences_ = {{"a", {2, 9, 30, 77, 5, 1200, 18, 40, 99}, 1}, {"b", {2, 500, 6, 7}, 2}};
    builder_ = std::make_unique<StepBuilder>(sequences_);
    builder_->add(0, 0, 9, 2);  // two padding rows behind the first sequence
    builder_->add(1, 0, 4, 0);
  }

  std::unique_ptr<Session> open() {
    auto session = Session::create(tiny(), *device_, pool_, parallel_, {});
    EXPECT_TRUE(session);
    return std::move(*session);
  }

  // Live rows of a kept value as raw bytes.
  std::vector<unsigned char> live_bytes(const View& v) {
    std::vector<unsigned char> all(static_cast<size_t>(v.bytes())), live;
    device_->copy_out(all.data(), v.ptr, all.size());
    const size_t row = all.size() / static_cast<size_t>(v.shape[0]);
    for (int64_t t = 0; t < v.shape[0]; ++t) {
      if (builder_->batch().seq[t] < 0) continue;
      live.insert(live.end(), all.begin() + t * row, all.begin() + (t + 1) * row);
    }
    return live;
  }

  Device* const device_ = &cpu();
  ThreadPool pool_{2};
  Parallel parallel_;
  std::vector<Sequence> sequences_;
  std::unique_ptr<StepBuilder> builder_;
};

TEST_F(SavedTest, KeepAllAndKeepLayerInputsGiveEqualBitsOnRecompute) {
  Saved all(*device_, KeepPolicy::kAll), inputs(*device_, KeepPolicy::kLayerInputs);
  for (Saved* saved : {&all, &inputs}) {
    auto session = open();
    session->set_saved(saved);
    ASSERT_TRUE(session->step(builder_->batch(), ScheduleKind::kTrain));
  }
  EXPECT_LT(inputs.bytes(), all.bytes());
  EXPECT_FALSE(inputs.find({Tap::kMlpAct, 2}));
  int compared = 0;
  for (int layer = 0; layer < tiny().arch.num_layers(); ++layer) {
    const View x = inputs.layer_input(layer);
    ASSERT_TRUE(x);
    std::vector<uint16_t> given(static_cast<size_t>(x.numel()));
    device_->copy_out(given.data(), x.ptr, static_cast<size_t>(x.bytes()));
    Saved again(*device_, KeepPolicy::kAll);
    auto session = open();
    session->set_saved(&again);
    ASSERT_TRUE(session->forward_from(builder_->batch(), ScheduleKind::kTrain, layer, given));
    for (const Boundary b : all_boundaries(tiny().arch, /*with_acc=*/false)) {
      if (b.layer != layer) continue;
      ASSERT_TRUE(all.find(b)) << boundary_name(b);
      ASSERT_TRUE(again.find(b)) << boundary_name(b);
      EXPECT_EQ(live_bytes(all.find(b)), live_bytes(again.find(b))) << boundary_name(b);
      ++compared;
    }
    EXPECT_EQ(live_bytes(all.lse(layer)), live_bytes(again.lse(layer)));
  }
  EXPECT_EQ(compared, 5 * 22 + 21);
}

TEST_F(SavedTest, SavingChangesNoLogprobAndKeepsTheHeadsMaxAndSum) {
  auto plain = open()->step(builder_->batch(), ScheduleKind::kTrain);
  Saved saved(*device_, KeepPolicy::kAll);
  auto session = open();
  session->set_saved(&saved);
  auto kept = session->step(builder_->batch(), ScheduleKind::kTrain);
  ASSERT_TRUE(plain && kept);
  ASSERT_EQ(plain->logp.size(), 10u);
  for (size_t i = 0; i < plain->logp.size(); ++i) {
    EXPECT_EQ(float_bits(plain->logp[i]), float_bits(kept->logp[i]));
  }
  const View ms = saved.max_sum(0);
  ASSERT_TRUE(ms);
  std::vector<float> values(static_cast<size_t>(ms.numel()));
  device_->copy_out(values.data(), ms.ptr, static_cast<size_t>(ms.bytes()));
  for (size_t r = 0; r < plain->logp.size(); ++r) {
    EXPECT_GE(values[2 * r + 1], 1.0f);  // the largest column alone contributes exp(0)
    EXPECT_LE(values[2 * r], 30.0f);     // the softcap
  }
  EXPECT_FALSE(saved.find({Tap::kHeadLogit, -1}));
}

}  // namespace
}  // namespace sb
