// The decoder chain: it starts at any layer, and its wiring is the model's (window, V of global
// layers, tied head). Values are looked at through taps only.
#include "samebits/chain/decoder.h"

#include <gtest/gtest.h>

#include <map>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::column_of;
using chain_testing::cpu;
using chain_testing::OpenSession;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::three_rows;
using chain_testing::tiny;

// Copies of the embedding, of every layer's output and of the final norm.
class KeepTaps : public Taps {
 public:
  bool wants(Boundary b) const override {
    return b.tap == Tap::kEmbed || b.tap == Tap::kLayerOut || b.tap == Tap::kFinalNorm;
  }
  Status emit(Ctx& ctx, Boundary b, const View& v, int64_t, int64_t, int64_t) override {
    auto& to = values[boundary_name(b)];
    to.resize(static_cast<size_t>(v.numel()));
    ctx.exec.device->copy_out(to.data(), v.ptr, static_cast<size_t>(v.bytes()));
    return {};
  }
  std::map<std::string, std::vector<uint16_t>> values;
};

TEST(Decoder, StartedAtAnyLayerFromItsTrueInputItEndsInTheSameBits) {
  const auto rows = three_rows();
  StepBuilder builder(rows);
  for (size_t s = 0; s < rows.size(); ++s) builder.add(s, 0, rows[s].size(), 0);
  OpenSession whole;
  KeepTaps taps;
  whole->set_taps(&taps);
  ASSERT_TRUE(ran(whole->step(builder.batch(), ScheduleKind::kTrain)));
  const auto& end = taps.values["final_norm"];
  for (int first = 0; first <= 6; ++first) {
    OpenSession session;
    KeepTaps again;
    session->set_taps(&again);
    const auto& given =
        taps.values[first ? "layers." + std::to_string(first - 1) + ".out" : "embed"];
    const auto z = session->forward_from(builder.batch(), ScheduleKind::kTrain, first, given);
    ASSERT_TRUE(ran(z));
    EXPECT_EQ(*z, end) << "from layer " << first;
    for (int i = first; i < 6; ++i) {
      const std::string name = "layers." + std::to_string(i) + ".out";
      EXPECT_EQ(again.values[name], taps.values[name]) << name << " from layer " << first;
    }
    EXPECT_EQ(again.values.count("layers." + std::to_string(first - 1) + ".out"), 0u)
        << "earlier layers do not run";
  }
}

TEST(Decoder, AFaultBeforeTheStartIsInheritedAndAddsNothing) {
  const auto rows = three_rows();
  StepBuilder builder(rows);
  builder.add(1, 0, rows[1].size(), 0);
  KeepTaps clean, faulty;
  SessionOptions options;
  options.faults = {{FaultKind::kLayerScalarDropped, 2}};
  OpenSession a, b(options);
  a->set_taps(&clean);
  b->set_taps(&faulty);
  ASSERT_TRUE(ran(a->step(builder.batch(), ScheduleKind::kTrain)));
  ASSERT_TRUE(ran(b->step(builder.batch(), ScheduleKind::kTrain)));
  ASSERT_NE(clean.values["layers.3.out"], faulty.values["layers.3.out"]);
  const std::vector<uint16_t> given = clean.values["layers.2.out"];
  const auto from = b->forward_from(builder.batch(), ScheduleKind::kTrain, 3, given);
  ASSERT_TRUE(ran(from));
  EXPECT_EQ(faulty.values["layers.3.out"], clean.values["layers.3.out"]);
  EXPECT_EQ(*from, clean.values["final_norm"]);
}

TEST(Decoder, WrongStartsAreRefused) {
  const auto rows = three_rows();
  StepBuilder builder(rows);
  builder.add(0, 0, 5, 0);
  OpenSession s;
  const std::vector<uint16_t> given(5 * 96, 0), small(5 * 96 - 1, 0);
  for (int layer : {-1, 7}) {
    EXPECT_TRUE(refused(s->forward_from(builder.batch(), ScheduleKind::kTrain, layer, given),
                        "the model has layers 0 … 5"));
  }
  EXPECT_TRUE(refused(s->forward_from(builder.batch(), ScheduleKind::kTrain, 2, small),
                      "the given values are not [rows, hidden]"));
}

TEST(Decoder, TheLastQueryOfTheWindowSeesKeyZeroAndTheNextDoesNot) {
  const int window = tiny().arch.window;
  std::vector<Sequence> rows{row("r", 40, 1, 31)};
  const RunResult before = score(rows, run_of("train", true));
  rows[0].tokens[0] += 1;
  const RunResult after = score(rows, run_of("train", true));
  const auto& a = column_of(*before.trace, "layers.0.attn.ctx").digests;
  const auto& b = column_of(*after.trace, "layers.0.attn.ctx").digests;
  const auto& out_a = column_of(*before.trace, "layers.0.out").digests;
  const auto& out_b = column_of(*after.trace, "layers.0.out").digests;
  for (int p = 0; p < 40; ++p) {
    const auto at = static_cast<size_t>(p);
    EXPECT_EQ(a[at] != b[at], p < window) << "position " << p;
    EXPECT_EQ(out_a[at] != out_b[at], p < window) << "position " << p;
  }
  const auto& far_a = column_of(*before.trace, "layers.5.attn.ctx").digests;
  const auto& far_b = column_of(*after.trace, "layers.5.attn.ctx").digests;
  EXPECT_NE(far_a[39], far_b[39]) << "a global layer sees key 0 from everywhere";
}

// A weight in memory of its own, changed in every element.
struct ChangedWeight {
  std::vector<uint16_t> bits;
  ChangedWeight(const View& from, uint16_t flip) : bits(static_cast<size_t>(from.numel())) {
    cpu().copy_out(bits.data(), from.ptr, static_cast<size_t>(from.bytes()));
    for (auto& b : bits) b = static_cast<uint16_t>(b ^ flip);
  }
};

TEST(Decoder, ValuesOfAGlobalLayerComeFromTheRawKeyProjection) {
  const std::vector<Sequence> rows{row("r", 30, 1, 32)};
  const RunResult before = score(rows, run_of("train", true));
  Model changed = tiny();
  ChangedWeight k_norm(changed.weights.layers[5].k_norm, 0x0010);
  changed.weights.layers[5].k_norm.ptr = k_norm.bits.data();
  const RunResult after = score(rows, run_of("train", true), 1, changed);
  for (const char* same : {"layers.4.out", "layers.5.attn.k", "layers.5.attn.k.acc",
                           "layers.5.attn.v_norm", "layers.5.attn.q_rope"}) {
    EXPECT_EQ(column_of(*before.trace, same).digests, column_of(*after.trace, same).digests)
        << same;
  }
  for (const char* other : {"layers.5.attn.k_norm", "layers.5.attn.k_rope", "layers.5.attn.ctx"}) {
    EXPECT_NE(column_of(*before.trace, other).digests, column_of(*after.trace, other).digests)
        << other;
  }
}

TEST(Decoder, TheHeadIsTheEmbedding) {
  const Weights& w = tiny().weights;
  EXPECT_EQ(w.head.ptr, w.embed.ptr);
  // A token that occurs nowhere still has a column: its row changes logits and no hidden state.
  const std::vector<Sequence> rows{row("r", 12, 1, 33)};
  const RunResult before = score(rows, run_of("train", true));
  Model changed = tiny();
  ChangedWeight table(w.embed, 0);
  for (int i = 0; i < 96; ++i) table.bits[static_cast<size_t>(3 * 96 + i)] ^= 0x0040;
  changed.weights.embed.ptr = changed.weights.head.ptr = table.bits.data();
  const RunResult after = score(rows, run_of("train", true), 1, changed);
  EXPECT_EQ(chain_testing::first_difference(*after.trace, *before.trace),
            (chain_testing::Difference{"head.logit", 0, 0}));
}

}  // namespace
}  // namespace sb
