// Traces: every boundary of every row is digested once, in its place whatever the schedule, and
// tracing changes no bit.
#include "samebits/chain/trace_taps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::OpenSession;
using chain_testing::ran;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::three_rows;
using chain_testing::tiny;

// Widths of tiny, written out: hidden 96, intermediate 256, vocabulary 2500; sliding 16 × 16 query
// and 8 × 16 KV columns, global 16 × 32 and 2 × 32.
int64_t tiny_width(std::string name, LayerType type) {
  if (name.ends_with(".acc")) name.resize(name.size() - 4);
  const bool sliding = type == LayerType::kSliding;
  for (const char* q : {".attn.q", ".attn.q_norm", ".attn.q_rope", ".attn.ctx"}) {
    if (name.ends_with(q)) return sliding ? 256 : 512;
  }
  for (const char* kv : {".attn.k", ".attn.v", ".attn.k_norm", ".attn.v_norm", ".attn.k_rope"}) {
    if (name.ends_with(kv)) return sliding ? 128 : 64;
  }
  for (const char* inter : {".mlp.gate", ".mlp.up", ".mlp.gelu", ".mlp.act"}) {
    if (name.ends_with(inter)) return 256;
  }
  if (name == "head.logit" || name == "head.softcap") return 2500;
  if (name == "head.lse" || name == "logp") return 1;
  return 96;
}

TEST(Trace, EveryBoundaryHasAColumnOfItsWidthAndType) {
  const Architecture& arch = tiny().arch;
  const auto rows = three_rows();
  const RunResult run = score(rows, run_of("train", true));
  const Trace& trace = *run.trace;
  const auto boundaries = all_boundaries(arch, true);
  ASSERT_EQ(trace.columns.size(), boundaries.size());
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const TraceColumn& c = trace.columns[i];
    const Boundary b = boundaries[i];
    const std::string name = boundary_name(b);
    EXPECT_EQ(c.boundary, b);
    const bool f32 = is_acc(b.tap) || b.tap >= Tap::kHeadLogit;
    EXPECT_EQ(c.dtype, f32 ? "f32" : "bf16") << name;
    const LayerType type =
        b.layer >= 0 ? arch.layers[static_cast<size_t>(b.layer)] : LayerType::kSliding;
    EXPECT_EQ(c.width, tiny_width(name, type)) << name;
    EXPECT_EQ(boundary_width(arch, b), c.width) << name;
    EXPECT_EQ(is_fp32(b.tap), f32) << name;
    EXPECT_EQ(c.scored, b.tap >= Tap::kHeadLogit) << name;
    EXPECT_EQ(c.digests.size(), c.scored ? trace.scored.size() : trace.rows.size()) << name;
    for (uint64_t d : c.digests) ASSERT_NE(d, 0u) << name << " has a row that nobody emitted";
    for (uint8_t bad : c.non_finite) ASSERT_EQ(bad, 0) << name;
  }
}

TEST(Trace, ASlidingLayerHas22BoundariesAndAGlobalOne21) {
  std::map<int, int> per_layer;
  for (const Boundary b : all_boundaries(tiny().arch, false)) per_layer[b.layer] += 1;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(per_layer[i], i == 5 ? 21 : 22);
  EXPECT_EQ(per_layer[-1], 6);  // embed, final_norm, head.{logit,softcap,lse}, logp
}

// Counts the rows it is handed and keeps the last values of one boundary.
class CountTaps : public Taps {
 public:
  explicit CountTaps(std::string keep = {}) : keep_(std::move(keep)) {}
  bool wants(Boundary) const override { return true; }
  Status emit(Ctx& ctx, Boundary b, const View& v, int64_t row_begin, int64_t column_begin,
              int64_t) override {
    const std::string name = boundary_name(b);
    for (int64_t r = 0; r < v.shape[0]; ++r) seen[name][row_begin + r] += 1;
    EXPECT_EQ(column_begin, 0) << "one rank holds whole rows";
    if (name == keep_) {
      values.resize(static_cast<size_t>(v.numel()));
      ctx.exec.device->copy_out(values.data(), v.ptr, static_cast<size_t>(v.bytes()));
    }
    return {};
  }
  std::map<std::string, std::map<int64_t, int>> seen;
  std::vector<uint16_t> values;

 private:
  std::string keep_;
};

TEST(Trace, NoRowIsEmittedTwiceOrLeftOut) {
  const auto rows = three_rows();
  StepBuilder builder(rows);
  for (size_t s = 0; s < rows.size(); ++s) builder.add(s, 0, rows[s].size(), 2);
  OpenSession session;
  CountTaps taps;
  session->set_taps(&taps);
  ASSERT_TRUE(ran(session->step(builder.batch(), ScheduleKind::kTrain)));
  const auto boundaries = all_boundaries(tiny().arch, true);
  EXPECT_EQ(taps.seen.size(), boundaries.size());
  for (const Boundary b : boundaries) {
    const auto& seen = taps.seen[boundary_name(b)];
    const size_t want = b.tap >= Tap::kHeadLogit ? builder.head_rows().size()
                                                 : static_cast<size_t>(builder.batch().rows());
    EXPECT_EQ(seen.size(), want) << boundary_name(b);
    for (const auto& [r, times] : seen) EXPECT_EQ(times, 1) << boundary_name(b) << " row " << r;
  }
}

TEST(Trace, DigestsAreThoseOfTheValues) {
  const auto rows = three_rows();
  const RunResult run = score({rows[1]}, run_of("train", true));
  StepBuilder builder(rows);
  builder.add(1, 0, rows[1].size(), 0);
  OpenSession session;
  CountTaps taps("layers.2.mlp.act");
  session->set_taps(&taps);
  ASSERT_TRUE(ran(session->step(builder.batch(), ScheduleKind::kTrain)));
  const TraceColumn& column = chain_testing::column_of(*run.trace, "layers.2.mlp.act");
  const auto width = static_cast<size_t>(tiny().arch.intermediate);
  ASSERT_EQ(taps.values.size(), column.digests.size() * width);
  for (size_t r = 0; r < column.digests.size(); ++r) {
    uint64_t sum = 0;
    for (size_t i = 0; i < width; ++i) sum += digest_element(taps.values[r * width + i], i);
    EXPECT_EQ(column.digests[r], sum) << r;
  }
}

TEST(Trace, SchedulesFillTheSameTrace) {
  const auto rows = three_rows();
  const RunResult train = score(rows, run_of("train", true));
  ASSERT_EQ(train.trace->ids, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(train.trace->rows.size(), 5u + 33 + 70);
  ASSERT_EQ(train.trace->scored.size(), 4u + 24 + 30);
  for (const char* schedule : {"prefill", "chunked:7", "decode"}) {
    RunOptions run = run_of(schedule, true);
    run.join_every = 2;
    expect_same(*score(rows, run).trace, *train.trace, schedule);
  }
  RunOptions padded = run_of("train", true);
  padded.padding_rows = 3;
  padded.pad_fill = {0x7fc0};  // NaN
  expect_same(*score(rows, padded).trace, *train.trace, "padding");
  RunOptions prefix = run_of("prefill", true);
  prefix.prefix = 16;
  expect_same(*score(rows, prefix).trace, *train.trace, "a cached prefix of 16");
}

TEST(Trace, TracingChangesNoBit) {
  const auto rows = three_rows();
  for (const char* schedule : {"train", "chunked:7", "decode"}) {
    expect_same(score(rows, run_of(schedule, true)).logprobs,
                score(rows, run_of(schedule)).logprobs, schedule);
  }
}

TEST(Trace, ValuesAreThoseThatWereDigestedWhateverTheSchedule) {
  const auto rows = three_rows();
  const Architecture& arch = tiny().arch;
  for (const char* schedule : {"train", "chunked:7", "decode"}) {
    RunOptions run = run_of(schedule, true);
    std::vector<std::vector<std::byte>> memory;
    const char* names[] = {"embed", "layers.2.mlp.act", "layers.5.attn.q.acc", "head.logit",
                           "logp"};
    for (const char* name : names) {
      const Boundary b = *parse_boundary(name);
      memory.emplace_back((is_per_scored_row(b.tap) ? 58 : 108) * value_row_bytes(arch, b));
      run.trace_values.push_back({b, memory.back()});
    }
    const RunResult result = score(rows, run);
    for (size_t i = 0; i < memory.size(); ++i) {
      const TraceColumn& c = chain_testing::column_of(*result.trace, names[i]);
      ASSERT_EQ(c.values.data(), memory[i].data());
      const size_t bytes = c.dtype == "f32" ? 4 : 2;
      for (size_t r = 0; r < c.digests.size(); ++r) {
        uint64_t sum = 0;
        for (int64_t k = 0; k < c.width; ++k) {
          uint32_t bits = 0;
          std::memcpy(&bits, &memory[i][(r * c.width + k) * bytes], bytes);
          sum += digest_element(bits, k);
        }
        ASSERT_EQ(sum, c.digests[r]) << schedule << " " << names[i] << " row " << r;
      }
    }
  }
}

TEST(Trace, RanksPartsAddUp) {
  const auto rows = three_rows();
  Trace sum = make_trace(tiny().arch, rows), part = sum;
  part.columns[3].dtype = "bf16";
  part.columns[3].width = 256;
  part.columns[3].digests[1] = ~uint64_t{0};
  part.columns[3].non_finite[2] = 1;
  add_trace(sum, part);
  add_trace(sum, part);
  EXPECT_EQ(sum.columns[3].dtype, "bf16");
  EXPECT_EQ(sum.columns[3].width, 256);
  EXPECT_EQ(sum.columns[3].digests[1], ~uint64_t{0} - 1);
  EXPECT_EQ(sum.columns[3].non_finite[2], 1);
  EXPECT_EQ(sum.columns[3].non_finite[1], 0);
  EXPECT_EQ(sum.columns[4].width, 0);
}

}  // namespace
}  // namespace sb
