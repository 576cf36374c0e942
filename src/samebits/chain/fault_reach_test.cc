// A planted fault that cannot show is refused, and what the refusal asks for makes it act: the run
// then differs from a clean one.
#include "samebits/chain/fault_reach.h"

#include <gtest/gtest.h>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::tiny;

struct Case {
  const char* fault;
  const char* schedule;
  std::vector<Sequence> rows;
  std::string reason;  // "": it acts
  float temperature = 1.0f;
  Code code = Code::kRefused;
};

bool moves(const Case& c, const RunOptions& faulty) {
  RunOptions clean = faulty;
  clean.session.faults.clear();
  const Logprobs a = score(c.rows, faulty).logprobs, b = score(c.rows, clean).logprobs;
  bool moved = false;
  for (size_t s = 0; s < a.size(); ++s) {
    for (size_t i = 0; i < a[s].size(); ++i) moved |= float_bits(a[s][i]) != float_bits(b[s][i]);
  }
  return moved;
}

// The window of the tiny preset is 24 keys, a page 16, a block 64.
TEST(FaultReach, IsRefusedExactlyWhereNothingWouldMove) {
  const auto one = [](int64_t n, int prompt) { return std::vector{row("a", n, prompt, 1)}; };
  const auto two = [](int64_t n, int64_t m) {
    return std::vector{row("a", n, 1, 1), row("b", m, 1, 2)};
  };
  const std::string at = "no scored token comes after position ";
  const std::vector<Case> cases = {
      {"key-leak", "decode", two(9, 9), "it cannot act in schedule decode", 1, Code::kUsage},
      {"stale-slot", "train", one(9, 1), "it cannot act in schedule train", 1, Code::kUsage},
      {"swapped-page", "prefill", one(99, 1), "schedule prefill", 1, Code::kUsage},
      {"window-minus-1", "train", one(24, 1), at + "23"},
      {"window-minus-1", "train", one(25, 1), ""},
      {"window-plus-1", "decode", one(25, 1), at + "24"},
      {"window-plus-1", "decode", one(26, 1), ""},
      {"swapped-page", "decode", one(33, 1), "no step begins behind two full pages"},
      {"swapped-page", "decode", one(34, 1), ""},
      {"swapped-page", "chunked:30", one(60, 1), "no step begins behind two full pages"},
      {"swapped-page", "chunked:32", one(60, 1), ""},
      {"stale-slot", "decode", one(9, 8), "no scored token comes after a decoded one"},
      {"stale-slot", "decode", one(9, 7), ""},
      {"stale-slot", "decode:1", one(9, 2), "no scored token comes after a decoded one"},
      {"stale-slot", "decode:2", one(9, 2), ""},
      {"key-leak", "train", one(9, 1), "no row is packed behind another"},
      {"key-leak", "train", two(9, 9), ""},
      {"dropped-last-block", "decode", one(65, 60), "no row decodes alone at position 64"},
      {"dropped-last-block", "decode", one(66, 60), ""},
      {"dropped-last-block", "decode", two(70, 70), "no row decodes alone"},
      {"dropped-last-block", "decode", two(70, 9), ""},
      {"rope-swap", "train", one(2, 1), at + "1"},
      {"rope-swap", "train", one(3, 1), ""},
      {"p-rope-exponent", "train", one(2, 1), at + "1"},
      {"p-rope-exponent", "train", one(9, 1), ""},
      {"p-rope-pairing", "decode", one(2, 1), at + "1"},
      {"p-rope-pairing", "decode", one(3, 1), ""},
      {"temperature-twice", "train", one(9, 1), "the temperature is 1"},
      {"temperature-twice", "train", one(9, 1), "", 0.7f},
      {"row-shift", "train", one(9, 8), "no row has two scored tokens"},
      {"row-shift", "train", one(9, 7), ""},
      {"v-after-k-norm", "train", one(2, 1), ""},
      {"norm-one-plus-w", "train", one(2, 1), ""},
      {"embed-scale-unrounded", "train", one(2, 1), ""},
      {"softcap-twice", "decode", one(2, 1), ""},
      {"gate-up-swapped:layer=5", "train", one(2, 1), ""},
  };
  for (const Case& c : cases) {
    RunOptions run = run_of(c.schedule);
    run.session.temperature = c.temperature;
    run.session.faults = {*parse_fault(c.fault, tiny().arch.num_layers())};
    const auto status = check_faults_act(tiny().arch, c.rows, run);
    const std::string what =
        std::string(c.fault) + " " + c.schedule + " " + std::to_string(c.rows[0].size());
    if (c.reason.empty()) {
      EXPECT_TRUE(ran(status)) << what;
    } else {
      EXPECT_TRUE(refused(status, c.reason, c.code)) << what;
      ASSERT_FALSE(status) << what;
      EXPECT_FALSE(status.error().remedy.empty()) << what;
    }
    EXPECT_EQ(moves(c, run), c.reason.empty()) << what;
  }
}

TEST(FaultReach, AModelWithoutWhatTheFaultDeviatesIsRefused) {
  const std::vector<Sequence> rows{row("a", 40, 1, 1)};
  RunOptions run = run_of("train");
  const auto check = [&](const char* fault, const Architecture& arch) {
    return check_fault_acts(*parse_fault(fault, 6), arch, rows, run);
  };
  Architecture whole = tiny().arch;
  whole.global.rotary_pairs = whole.global.head_dim / 2;
  EXPECT_TRUE(refused(check("p-rope-pairing", whole), "rotate the whole head"));
  EXPECT_TRUE(refused(check("p-rope-exponent", whole), "stay the same"));
  Architecture sliding = tiny().arch;
  sliding.layers.assign(6, LayerType::kSliding);
  EXPECT_TRUE(refused(check("v-after-k-norm", sliding), "no layer of its type"));
  Architecture square = tiny().arch;
  square.hidden = 64;
  EXPECT_TRUE(refused(check("embed-scale-unrounded", square), "exact in bf16"));
}

// The last drawn token is never fed back, so one drawn token has no decoded one before it.
TEST(FaultReach, ARolloutIsCheckedOnTheRowsItMayDraw) {
  RunOptions run = run_of("decode");
  run.session.faults = {{FaultKind::kStaleSlot}};
  EXPECT_TRUE(refused(check_faults_act(tiny().arch, {row("a", 5, 4, 1)}, run, {true, false}),
                      "no scored token"));
  EXPECT_TRUE(ran(check_faults_act(tiny().arch, {row("a", 6, 4, 1)}, run, {true, false})));
  // Rows of one length end together, unless an id may stop one of them.
  run.session.faults = {{FaultKind::kDroppedLastBlock}};
  const std::vector<Sequence> pair{row("a", 80, 4, 1), row("b", 80, 4, 2)};
  EXPECT_TRUE(refused(check_faults_act(tiny().arch, pair, run, {true, false}), "decodes alone"));
  EXPECT_TRUE(ran(check_faults_act(tiny().arch, pair, run, {true, true})));
}

}  // namespace
}  // namespace sb
