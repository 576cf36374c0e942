// Comparing traces: the first differing boundary by causal order, its row and its position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Two sequences of 4 and 3 rows over two layers; logp has its true digests.
struct TracedRun {
  RunHeader header{.model = "m1",
                   .weights = "w1",
                   .contracts = "gemma4.strict.v1:00ff",
                   .profile = "sm90",
                   .temperature = 1,
                   .suppress = {},
                   .schedule = "train"};
  Trace trace;
  std::vector<std::string> tokens;

  explicit TracedRun(bool swapped = false) {
    trace.ids = {"a", "b"};
    tokens = {hex64(10), hex64(20)};
    const int lengths[] = {4, 3};
    if (swapped) {
      std::swap(trace.ids[0], trace.ids[1]);
      std::swap(tokens[0], tokens[1]);
    }
    for (int s = 0; s < 2; ++s) {
      for (int p = 0; p < lengths[swapped ? 1 - s : s]; ++p) {
        if (p > 0) trace.scored.push_back(static_cast<int32_t>(trace.rows.size()));
        trace.rows.push_back({s, p});
      }
    }
    add({Tap::kEmbed, -1});
    for (int layer = 0; layer < 2; ++layer) {
      for (const Tap t :
           {Tap::kAttnKRope, Tap::kAttnCtx, Tap::kMlpDownAcc, Tap::kMlpDown, Tap::kLayerOut}) {
        add({t, layer});
      }
    }
    add({Tap::kLogp, -1});
  }
  void add(Boundary b) {
    const bool scored = b.tap == Tap::kLogp;
    TraceColumn c{b, is_acc(b.tap) || scored ? "f32" : "bf16", scored ? 1 : 96, scored, {}, {}};
    const auto put = [&](const TraceRow& row) {
      const uint64_t key =
          xxh64(trace.ids[static_cast<size_t>(row.seq)]) + static_cast<uint64_t>(row.pos);
      c.digests.push_back(scored
                              ? digest_element(float_bits(-1.0f - row.pos), 0)
                              : mix64(key ^ (static_cast<uint64_t>(trace.columns.size()) << 40)));
      c.non_finite.push_back(0);
    };
    if (scored) {
      for (const int32_t s : trace.scored) put(trace.rows[static_cast<size_t>(s)]);
    } else {
      for (const auto& row : trace.rows) put(row);
    }
    trace.columns.push_back(c);
  }
  TraceColumn& column(const std::string& name) {
    for (auto& c : trace.columns) {
      if (boundary_name(c.boundary) == name) return c;
    }
    throw std::runtime_error(name);
  }
  TraceView view() const { return view_of(trace, header, tokens); }
};

TEST(CompareTraces, ValuesShowTheFirstDifferingElement) {
  TracedRun a, b;
  std::vector<uint16_t> va(7 * 96, 0x3f80), vb;
  const auto keep = [](TracedRun& run, std::vector<uint16_t>& values) {
    TraceColumn& c = run.column("layers.1.out");
    c.values = std::as_writable_bytes(std::span(values));
    for (size_t r = 0; r < 7; ++r) {
      c.digests[r] = 0;
      for (size_t i = 0; i < 96; ++i) c.digests[r] += digest_element(values[r * 96 + i], i);
    }
  };
  va[2 * 96 + 40] = 0x4000;
  vb = va;
  vb[2 * 96 + 41] = 0x3f83;
  vb[2 * 96 + 90] = 0x0000;
  keep(a, va);
  keep(b, vb);
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kDrift);
  ASSERT_TRUE(c.first);
  EXPECT_EQ(c.first->boundary, "layers.1.out");
  EXPECT_EQ(c.first->pos, 2);
  EXPECT_EQ(c.first->column, 41);
  EXPECT_EQ(c.first->bits_a, 0x3f80u);
  EXPECT_EQ(c.first->bits_b, 0x3f83u);
  EXPECT_EQ(c.first->ulp, 3);
  EXPECT_THAT(
      comparison_text(c),
      HasSubstr("position 2, column 41, 3 ulp\n     A  0x3f80  1\n     B  0x3f83  1.0234375\n"));
  EXPECT_THAT(comparison_json(c), HasSubstr("\"column\": 41"));
  EXPECT_THAT(comparison_html(c), HasSubstr("41"));
  b.column("layers.1.out").values = {};  // of one side only: digests are compared, none are shown
  EXPECT_FALSE(compare_traces(a.view(), b.view()).first->is_value);
}

TEST(CompareTraces, EqualWhateverScheduleAndSequenceOrder) {
  TracedRun a, b(true);
  b.header.schedule = "decode";
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kEqual) << c.finding;
  EXPECT_EQ(c.finding, "all 12 boundaries of 2 rows have equal bits (82 row digests)");
  EXPECT_EQ(c.compared, 11 * 7 + 5);
}

TEST(CompareTraces, AShiftOfTheLogProbabilitiesAloneIsNamed) {
  for (const int lag : {1, -1}) {
    TracedRun a, b;
    auto& d = b.column("logp").digests;  // three of a, two of b; the last one stands twice
    if (lag > 0) d = {d[1], d[2], d[2], d[4], d[4]};
    if (lag < 0) d = {d[0], d[0], d[1], d[3], d[3]};
    const Comparison c = compare_traces(a.view(), b.view());
    EXPECT_EQ(c.code, Code::kDrift);
    EXPECT_THAT(c.finding, HasSubstr("first difference at logp"));
    EXPECT_THAT(c.hint, HasSubstr("shifted by one"));
    EXPECT_THAT(c.hint, HasSubstr(lag > 0 ? "A[i+1]" : "A[i−1]"));
    EXPECT_THAT(c.signatures, testing::ElementsAre("shift"));
  }
  TracedRun a, b;
  b.column("logp").digests[1] ^= 1;
  EXPECT_TRUE(compare_traces(a.view(), b.view()).signatures.empty());
}

TEST(CompareTraces, FirstInCausalOrderIsTheFindingNotTheLargest) {
  TracedRun a, b;
  b.column("layers.0.mlp.down.acc").digests[5] ^= 1;
  for (const char* name : {"layers.0.mlp.down", "layers.0.out", "layers.1.out"}) {
    for (auto& d : b.column(name).digests) d ^= 1;  // much more of it downstream
  }
  b.column("logp").digests[3] = digest_element(float_bits(-7.0f), 0);
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kDrift);
  ASSERT_TRUE(c.first);
  EXPECT_EQ(c.first->boundary, "layers.0.mlp.down.acc");
  EXPECT_EQ(c.first->layer, 0);
  EXPECT_EQ(c.first->id, "b");
  EXPECT_EQ(c.first->pos, 1);
  EXPECT_FALSE(c.first->is_value);
  EXPECT_EQ(
      c.finding,
      "first difference at layers.0.mlp.down.acc, row \"b\", position 1; the 3 boundaries before "
      "it agree");
  EXPECT_THAT(c.hint, HasSubstr("likely reduction order"));
  ASSERT_EQ(c.boundaries.size(), 12u);
  EXPECT_EQ(c.boundaries[3].differing, 1);
  EXPECT_EQ(c.boundaries[4].differing, 7);
  EXPECT_EQ(c.boundaries[5].differing, 7);
  EXPECT_EQ(c.boundaries[6].differing, 0);
}

TEST(CompareTraces, ValuesOfOneElementRowsComeBackFromTheirDigests) {
  TracedRun a, b;
  b.column("logp").digests[1] = digest_element(float_bits(-3.5f), 0);
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kDrift);
  ASSERT_TRUE(c.first && c.first->is_value && c.largest);
  EXPECT_EQ(c.first->pos, 2);
  EXPECT_EQ(c.first->bits_a, float_bits(-3.0f));
  EXPECT_EQ(c.first->bits_b, float_bits(-3.5f));
  EXPECT_EQ(c.largest->value_b, -3.5f);
  EXPECT_THAT(c.hint, HasSubstr("shifted by one"));
}

TEST(CompareTraces, FirstFollowsFileAOrderOfSequences) {
  TracedRun a(true), b;
  for (auto& d : b.column("embed").digests) d ^= 1;
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.first->id, "b");  // A's first sequence
  EXPECT_EQ(c.first->pos, 0);
  EXPECT_THAT(c.finding, HasSubstr("it is the first boundary compared"));
}

TEST(CompareTraces, NonFiniteFailsEvenWhenEqual) {
  TracedRun a, b;
  a.column("layers.1.attn.ctx").non_finite[2] = 1;
  b.column("layers.1.attn.ctx").non_finite[2] = 1;
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_TRUE(c.first->non_finite);
  EXPECT_EQ(c.differing, 0);
  EXPECT_EQ(
      c.finding,
      "inf or NaN at layers.1.attn.ctx, row \"a\", position 2, in both; the 7 boundaries before "
      "it agree");
}

TEST(CompareTraces, DifferentSetsNeverPass) {
  const auto verdict = [](const TracedRun& a, const TracedRun& b) {
    return compare_traces(a.view(), b.view());
  };
  TracedRun a, b;
  b.tokens[1] = hex64(21);
  Comparison c = verdict(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_EQ(c.finding, "one sequence with differing token ids: \"b\"");
  b = TracedRun();
  b.trace.ids[1] = "c";
  c = verdict(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding, HasSubstr("one sequence only in A: \"b\""));
  b = TracedRun();
  b.trace.rows[3].pos = 9;
  EXPECT_THAT(verdict(a, b).finding, HasSubstr("with differing positions: \"a\""));
  b = TracedRun();
  b.trace.scored[0] = 0;
  EXPECT_THAT(verdict(a, b).finding, HasSubstr("with differing scored positions: \"a\""));
  b = TracedRun();
  b.trace.columns.erase(b.trace.columns.begin() + 3);
  c = verdict(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_EQ(c.finding, "1 boundary is only in A, first layers.0.mlp.down.acc");
  b = TracedRun();
  b.column("embed").width = 97;
  EXPECT_EQ(verdict(a, b).finding, "embed is bf16[96] in A and bf16[97] in B");
}

TEST(CompareTraces, DisjointTracesAreBrokenData) {
  TracedRun a, b;
  b.trace.ids = {"x", "y"};
  EXPECT_EQ(compare_traces(a.view(), b.view()).code, Code::kBrokenData);
}

TEST(CompareTraces, UnsoundTracesAreBrokenData) {
  TracedRun a, b;
  b.trace.rows.clear();
  b.trace.scored.clear();
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("use trace B: it holds no rows"));
}

TEST(CompareTraces, HeadersAreTriagedFirst) {
  TracedRun a, b;
  b.header.weights = "w2";
  b.column("embed").digests[0] ^= 1;
  const Comparison c = compare_traces(a.view(), b.view());
  EXPECT_EQ(c.code, Code::kWeightsDiffer);
  ASSERT_TRUE(c.first);  // still located
  EXPECT_THAT(c.notes, Contains(HasSubstr("first difference at embed")));
}

TEST(CompareTraces, CrossProfileCountsPerBoundary) {
  TracedRun a, b;
  b.header.profile = "ieee";
  EXPECT_EQ(compare_traces(a.view(), b.view()).code, Code::kNotComparable);
  CompareOptions options{.comparator = kCrossProfileComparator, .token_rows = {}};
  EXPECT_EQ(compare_traces(a.view(), b.view(), options).code, Code::kNotComparable);
  b.column("layers.1.attn.ctx").digests[0] ^= 1;
  const Comparison c = compare_traces(a.view(), b.view(), options);
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_EQ(c.boundaries[7].differing, 1);
}

TEST(CompareTraces, FilesAndMemoryGiveOneVerdict) {
  TracedRun a, b;
  b.column("layers.1.out").digests[6] ^= 1;
  const std::string pa = testing::TempDir() + "/" + std::to_string(getpid()) + "_a.sbt",
                    pb = testing::TempDir() + "/" + std::to_string(getpid()) + "_b.sbt";
  ASSERT_TRUE(write_trace_file(pa, true, a.view()));
  ASSERT_TRUE(write_trace_file(pb, true, b.view()));
  auto c = compare_files(pa, pb);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->finding, compare_traces(a.view(), b.view()).finding);
  EXPECT_THAT(c->hint, HasSubstr("layer_scalar"));
  c = compare_files(pa, pa);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->code, Code::kEqual);
}

TEST(LikelyCause, DependsOnBoundaryAndPosition) {
  const auto cause = [](Tap t, int64_t pos, const char* b = "train") {
    return likely_cause({t, is_layer_tap(t) ? 2 : -1}, pos, "train", b);
  };
  EXPECT_THAT(cause(Tap::kHeadSoftcap, 0), HasSubstr("likely softcap left out"));
  EXPECT_THAT(cause(Tap::kAttnCtx, 24), HasSubstr("positions below 24 agree"));
  EXPECT_THAT(cause(Tap::kAttnCtx, 24), HasSubstr("window off by one"));
  EXPECT_THAT(cause(Tap::kAttnCtx, 24, "decode"), HasSubstr("page table"));
  EXPECT_THAT(cause(Tap::kAttnCtx, 0), HasSubstr("softmax scale"));
  EXPECT_THAT(cause(Tap::kLayerOut, 0), HasSubstr("layer_scalar"));
  EXPECT_THAT(cause(Tap::kEmbed, 0), HasSubstr("embedding scale"));
  EXPECT_THAT(cause(Tap::kMlpDownAcc, 3), HasSubstr("split-K"));
  EXPECT_THAT(cause(Tap::kAttnQRope, 1), HasSubstr("RoPE (position 0 is not rotated"));
  for (int t = 0; t < kNumTaps; ++t) EXPECT_THAT(cause(Tap(t), 0), HasSubstr("likely ")) << t;
}

}  // namespace
}  // namespace sb
