// Planted faults in runs: in each schedule it acts in, a fault changes bits, first at its boundary
// and position; in the others nothing changes; and the records cannot tell.
#include <gtest/gtest.h>

#include <algorithm>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::Difference;
using chain_testing::expect_same;
using chain_testing::first_difference;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::tiny;

constexpr int kWindow = 24;  // of the tiny preset
const char* const kSchedules[] = {"train", "prefill", "chunked:7", "decode"};

// Longer than the window and than a block of 64 keys; the second prompt ends beyond two pages.
std::vector<Sequence> rows() { return {row("a", 70, 5, 21), row("b", 50, 40, 22)}; }

RunResult run(const std::vector<Sequence>& of, const std::string& schedule, bool trace,
              const std::string& fault = "") {
  RunOptions options = run_of(schedule, trace);
  options.session.temperature = 0.7f;  // at 1 a second division changes nothing
  if (!fault.empty()) {
    options.session.faults.push_back(*parse_fault(fault, tiny().arch.num_layers()));
  }
  return score(of, options);
}

struct Case {
  const char* name;
  const char* fault;
  const char* boundary;
  std::vector<std::string> acts;  // schedules
  int seq = 0;
  int64_t pos = 0;       // of the first difference
  bool one_row = false;  // acts where one row decodes by itself
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.fault; }

class FaultRuns : public testing::TestWithParam<Case> {
 protected:
  std::vector<Sequence> of() const {
    return GetParam().one_row ? std::vector<Sequence>{rows()[0]} : rows();
  }
  bool acts(const std::string& schedule) const {
    const auto& all = GetParam().acts;
    return std::find(all.begin(), all.end(), schedule) != all.end();
  }
};

TEST_P(FaultRuns, ShowFirstAtTheirBoundaryAndPosition) {
  const Case& c = GetParam();
  for (const std::string schedule : kSchedules) {
    if (!acts(schedule)) continue;
    const RunResult clean = run(of(), schedule, true), faulty = run(of(), schedule, true, c.fault);
    const auto found = first_difference(*faulty.trace, *clean.trace);
    ASSERT_TRUE(found) << schedule;
    // Chunks of 7 come to the first pages that both are full at 35, single tokens at 32.
    const bool late = std::string(c.fault) == "swapped-page" && schedule == "chunked:7";
    EXPECT_EQ(*found, (Difference{c.boundary, c.seq, late ? 35 : c.pos})) << schedule;
    EXPECT_EQ(faulty.records, clean.records) << "a faulty run is known by its bits alone";
    EXPECT_EQ(faulty.steps, clean.steps);
    for (const TraceColumn& column : faulty.trace->columns) {
      for (uint8_t bad : column.non_finite) ASSERT_EQ(bad, 0) << boundary_name(column.boundary);
    }
  }
}

TEST_P(FaultRuns, ChangeNothingInOtherSchedules) {
  const Case& c = GetParam();
  const Logprobs want = run(of(), "train", false).logprobs;
  for (const std::string schedule : kSchedules) {
    if (acts(schedule)) continue;
    expect_same(run(of(), schedule, false, c.fault).logprobs, want, schedule + " with " + c.fault);
  }
}

const std::vector<std::string> kAll(std::begin(kSchedules), std::end(kSchedules));

INSTANTIATE_TEST_SUITE_P(
    Fault, FaultRuns,
    testing::Values(
        Case{"SoftcapMissing", "softcap-missing", "head.softcap", kAll, 0, 4},
        Case{"SoftcapBf16", "softcap-bf16", "head.softcap", kAll, 0, 4},
        Case{"WindowMinusOne", "window-minus-1", "layers.0.attn.ctx", kAll, 0, kWindow - 1},
        Case{"WindowPlusOne", "window-plus-1", "layers.0.attn.ctx", kAll, 0, kWindow},
        Case{"ScalarDropped", "layer-scalar-dropped:layer=2", "layers.2.out", kAll},
        Case{"ScalarDroppedInALaterLayer", "layer-scalar-dropped:layer=5", "layers.5.out", kAll},
        Case{"EmbedScaleUnrounded", "embed-scale-unrounded", "embed", kAll},
        Case{"LeafOrder", "gemm-leaf-order:layer=3", "layers.3.mlp.down.acc", kAll},
        Case{"LeafOrderInEveryLayer", "gemm-leaf-order", "layers.0.mlp.down.acc", kAll},
        Case{"SwappedPage", "swapped-page", "layers.0.attn.ctx", {"chunked:7", "decode"}, 0, 32},
        Case{"StaleSlot", "stale-slot", "layers.0.attn.ctx", {"decode"}, 0, 5},
        Case{"KeyLeak", "key-leak", "layers.0.attn.ctx", {"train"}, 1, 0},
        Case{
            "DroppedLastBlock", "dropped-last-block", "layers.0.attn.ctx", {"decode"}, 0, 64, true},
        Case{"RopeSwap", "rope-swap", "layers.0.attn.q_rope", kAll, 0, 1},
        Case{"PRopeExponent", "p-rope-exponent", "layers.5.attn.q_rope", kAll, 0, 1},
        Case{"PRopePairing", "p-rope-pairing", "layers.5.attn.q_rope", kAll, 0, 1},
        Case{"VAfterKNorm", "v-after-k-norm", "layers.5.attn.v_norm", kAll},
        Case{"NormOnePlusW", "norm-one-plus-w", "layers.0.attn.norm", kAll},
        Case{"SoftcapTwice", "softcap-twice", "head.softcap", kAll, 0, 4},
        Case{"SoftcapXTanh", "softcap-x-tanh", "head.softcap", kAll, 0, 4},
        Case{"TemperatureTwice", "temperature-twice", "head.lse", kAll, 0, 4},
        Case{"RowShift", "row-shift", "logp", kAll, 0, 4},
        Case{"GateUpSwapped", "gate-up-swapped", "layers.0.mlp.gelu", kAll},
        Case{"GateUpSwappedInOneLayer", "gate-up-swapped:layer=4", "layers.4.mlp.gelu", kAll}),
    [](const auto& test) { return test.param.name; });

TEST(Fault, AKeyLeaksOnlyFromARowBefore) {
  RunOptions alone = run_of("train");
  const Logprobs want = score(rows(), alone).logprobs;
  alone.packed = false;
  alone.session.faults = {{FaultKind::kKeyLeak, 0}};
  expect_same(score(rows(), alone).logprobs, want, "each row alone");
}

TEST(Fault, ALastBlockIsDroppedOnlyWhereOneRowDecodes) {
  // Two rows of one length decode together to their end.
  const std::vector<Sequence> pair{row("a", 70, 5, 21), row("b", 70, 5, 22)};
  expect_same(run(pair, "decode", false, "dropped-last-block").logprobs,
              run(pair, "train", false).logprobs, "two rows");
}

TEST(Fault, ALogProbabilityIsReportedForTheRowBefore) {
  for (const char* schedule : {"train", "decode"}) {
    const Logprobs right = run(rows(), schedule, false).logprobs;
    const Logprobs shifted = run(rows(), schedule, false, "row-shift").logprobs;
    Logprobs want = right;
    for (auto& row : want) {
      row.erase(row.begin());
      row.push_back(row.back());
    }
    expect_same(shifted, want, schedule);
  }
}

TEST(Fault, ATemperatureAppliedTwiceIsItsSquare) {
  const Logprobs twice = run(rows(), "train", false, "temperature-twice").logprobs;
  RunOptions squared = run_of("train");
  squared.session.temperature = 0.7f * 0.7f;
  expect_same(twice, score(rows(), squared).logprobs, "0.49");
  RunOptions one = run_of("train");
  const Logprobs want = score(rows(), one).logprobs;
  one.session.faults = {{FaultKind::kTemperatureTwice}};
  expect_same(score(rows(), one).logprobs, want, "1 · 1");
}

// The last tokens decode one by one whatever the prompt is; the first of them is not written.
TEST(Fault, AStaleSlotLiesInTheDecodedTail) {
  const std::vector<Sequence> one{rows()[0]};
  const RunResult clean = run(one, "decode:8", true);
  const auto found =
      first_difference(*run(one, "decode:8", true, "stale-slot").trace, *clean.trace);
  EXPECT_EQ(found, (Difference{"layers.0.attn.ctx", 0, 62}));
}

// What a rollout with a fault in its cache drew is not what training scores, from the second drawn
// token on: the first comes from the prompt alone.
TEST(Fault, ARolloutWithAFaultDisagreesWithTraining) {
  for (const char* fault : {"stale-slot", "swapped-page", "dropped-last-block", "window-plus-1"}) {
    RolloutOptions options;
    options.max_new = 6;
    options.session.temperature = 6.0f;
    options.session.faults.push_back(*parse_fault(fault, tiny().arch.num_layers()));
    ThreadPool pool(1);
    Parallel alone;
    const auto drawn =
        rollout(tiny(), chain_testing::cpu(), pool, alone, {row("r", 66, 1, 23)}, options);
    ASSERT_TRUE(chain_testing::ran(drawn)) << fault;
    RunOptions train = run_of("train");
    train.session.temperature = 6.0f;
    const auto want = score(drawn->sequences, train).logprobs[0];
    const auto& got = drawn->logprobs[0];
    const bool of_prompt = std::string(fault) == "window-plus-1";  // acts in any step
    EXPECT_EQ(float_bits(got[0]) != float_bits(want[0]), of_prompt) << fault;
    EXPECT_NE(float_bits(got[1]), float_bits(want[1])) << fault;
  }
}

// A window that is one key too wide reads a key that a prefix need not have handed over.
TEST(Fault, AWiderWindowBehindAPrefixShowsAsDriftAndNotAsARefusal) {
  const std::vector<Sequence> one{rows()[0]};
  RunOptions options = run_of("prefill", true);
  options.prefix = 39;  // the query at 39 sees keys from 16, the first of a page
  const RunResult clean = score(one, options);
  options.session.faults = {{FaultKind::kWindowPlusOne, 0}};
  const auto found = first_difference(*score(one, options).trace, *clean.trace);
  EXPECT_EQ(found, (Difference{"layers.0.attn.ctx", 0, kWindow}));
}

}  // namespace
}  // namespace sb
