// The negative control: every planted fault turns verify red, in the schedules it can act in and in
// no other, and each red scenario names the boundary and the position where the fault must show.
#include <algorithm>
#include <map>

#include "samebits/gate/engine_testing.h"
#include "samebits/gate/scenarios.h"
#include "samebits/gate/verify.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)

// Where a fault must show first, given the row it was found in.
using Position = std::function<bool(const Sequence& row, int64_t position, int64_t window)>;

struct Planted {
  const char* inject;
  const char* boundary;
  Position at;
  bool everywhere = true;  // red in every scenario of its schedules, not only in some
  bool warm = false;       // red in exactly the scenarios whose temperature is not 1
};

bool first_row(const Sequence&, int64_t position, int64_t) { return position == 0; }
bool second_row(const Sequence&, int64_t position, int64_t) { return position == 1; }
bool first_scored(const Sequence& s, int64_t position, int64_t) {
  return position == s.prompt_len - 1;
}

const std::vector<Planted>& planted() {
  static const std::vector<Planted> all = {
      {"softcap-missing", "head.softcap", first_scored},
      {"softcap-bf16", "head.softcap", first_scored},
      {"window-minus-1", "layers.0.attn.ctx",
       [](const Sequence&, int64_t p, int64_t window) { return p == window - 1; }},
      {"window-plus-1", "layers.0.attn.ctx",
       [](const Sequence&, int64_t p, int64_t window) { return p == window; }},
      {"layer-scalar-dropped:layer=3", "layers.3.out", first_row},
      {"embed-scale-unrounded", "embed", first_row},
      // In fp32 always; bf16 often hides it, so only traced scenarios are sure to see it.
      {"gemm-leaf-order:layer=2", "layers.2.mlp.down.acc", first_row, false},
      // Needs two full pages that earlier steps wrote.
      {"swapped-page", "attn.ctx", [](const Sequence&, int64_t p, int64_t) { return p >= 32; },
       false},
      // The key of the first decoded token is the one that is not written.
      {"stale-slot", "layers.0.attn.ctx",
       [](const Sequence& s, int64_t p, int64_t) { return p == s.prompt_len; }, false},
      {"key-leak", "layers.0.attn.ctx", first_row},
      // There must be a block of 64 keys before the last one.
      {"dropped-last-block", "attn.ctx",
       [](const Sequence&, int64_t p, int64_t) { return p >= 64; }, false},
      // Position 0 is not rotated.
      {"rope-swap", "layers.0.attn.q_rope", second_row},
      {"p-rope-exponent", "layers.5.attn.q_rope", second_row},
      {"p-rope-pairing", "layers.5.attn.q_rope", second_row},
      {"v-after-k-norm", "layers.5.attn.v_norm", first_row},
      {"norm-one-plus-w", "layers.0.attn.norm", first_row},
      {"softcap-twice", "head.softcap", first_scored},
      {"softcap-x-tanh", "head.softcap", first_scored},
      // Only where the temperature is not 1.
      {"temperature-twice", "head.lse", first_scored, false, true},
      {"row-shift", "logp", first_scored},
      {"gate-up-swapped:layer=1", "layers.1.mlp.gelu", first_row},
  };
  return all;
}

std::string test_name(const testing::TestParamInfo<size_t>& param) {
  std::string name = planted()[param.param].inject;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

// Runs verify with the fault and checks every scenario against what the fault can do.
void expect_found(const Planted& fault, const std::string& preset,
                  const std::vector<Sequence>& rows) {
  Engine engine = open_engine({.threads = 2, .inject = {fault.inject}}, preset);
  const Architecture& arch = engine.model->arch;
  const auto report = verify(engine, {.rows = rows});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->code, Code::kDrift);
  const auto scenarios = all_scenarios(arch, 0);
  ASSERT_EQ(scenarios.size(), report->scenarios.size());
  const FaultInfo& info = fault_info(engine.faults[0].kind);
  std::map<ScheduleKind, int> red;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    const ScenarioResult& got = report->scenarios[i];
    const std::string name = got.group + ": " + got.name + ": " + got.finding;
    ASSERT_EQ(got.name, scenarios[i].name);
    const ScheduleKind kind = scenarios[i].schedule.kind;
    const bool warm = scenarios[i].meaning.temperature != 1.0f;
    const bool can_act = (info.schedules & schedule_bit(kind)) && (warm || !fault.warm);
    if (!can_act) {
      EXPECT_EQ(got.code, Code::kEqual) << name;
    }
    if (can_act && (fault.everywhere || fault.warm ||
                    (scenarios[i].traced && kind == ScheduleKind::kDecode))) {
      EXPECT_EQ(got.code, Code::kDrift) << name;
    }
    if (got.code == Code::kEqual) continue;
    red[kind] += 1;
    EXPECT_TRUE(got.boundary == fault.boundary ||
                got.boundary.ends_with(std::string(".") + fault.boundary))
        << name;
    Sequence row{.id = got.row, .tokens = {}, .prompt_len = 1};  // strangers have a prompt of 1
    for (const auto& r : rows) {
      if (got.row == r.id || got.row == "drawn " + r.id) row = r;
    }
    EXPECT_TRUE(fault.at(row, got.position, arch.window)) << name;
  }
  for (int k = 0; k < 4; ++k) {
    const auto kind = static_cast<ScheduleKind>(k);
    const bool reached =
        !fault.warm || kind == ScheduleKind::kTrain || kind == ScheduleKind::kDecode;
    if ((info.schedules & schedule_bit(kind)) && reached) {
      EXPECT_GT(red[kind], 0) << "schedule " << k;
    }
  }
}

class VerifyFault : public testing::TestWithParam<size_t> {};

TEST_P(VerifyFault, IsFoundWhereItWasPlanted) {
  expect_found(planted()[GetParam()], "tiny", few_rows());
}

INSTANTIATE_TEST_SUITE_P(Every, VerifyFault, testing::Range(size_t{0}, planted().size()),
                         test_name);

TEST(VerifyFaults, TheListAboveIsComplete) {
  std::vector<std::string> tested, known;
  for (const auto& p : planted()) {
    const std::string text = p.inject;
    tested.push_back(text.substr(0, text.find(':')));
  }
  for (const auto& f : all_faults()) known.emplace_back(f.name);
  EXPECT_EQ(tested, known);
}

TEST(VerifyFaults, TheReportNamesThePlantedFaultForItsOwnOperator) {
  Engine engine = open_engine({.threads = 2, .inject = {"key-leak", "stale-slot"}});
  const auto report = verify(engine, {.rows = few_rows(), .suite = "hybrid-attention"});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->planted, (std::vector<std::string>{"key-leak", "stale-slot"}));
  EXPECT_EQ(report->code, Code::kDrift);
}

TEST(VerifyFaults, OneSharedByAllRanksIsFoundToo) {
  for (const char* fault : {"layer-scalar-dropped:layer=2", "window-minus-1"}) {
    Engine engine = open_engine({.threads = 2, .tp = 4, .inject = {fault}});
    const auto report = verify(engine, {.rows = few_rows(), .suite = "hybrid-attention"});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->code, Code::kDrift) << fault;
    EXPECT_EQ(report->scenarios[0].boundary,
              boundary_name(fault_boundary(engine.faults[0], engine.model->arch)));
  }
}

// The mini model has the real head sizes and the real window of 1024 keys.
std::vector<Sequence> mini_rows(const std::string& inject) {
  if (inject.starts_with("window")) return {row_of("short", 5, 1), row_of("long", 1040, 1000)};
  return {row_of("short", 5, 1), row_of("middle", 40, 4), row_of("longer", 150, 90)};
}

class VerifyMiniFaultFull : public testing::TestWithParam<size_t> {};

TEST_P(VerifyMiniFaultFull, IsFoundWhereItWasPlantedFull) {
  const Planted& fault = planted()[GetParam()];
  expect_found(fault, "mini", mini_rows(fault.inject));
}

INSTANTIATE_TEST_SUITE_P(Every, VerifyMiniFaultFull, testing::Range(size_t{0}, planted().size()),
                         test_name);

}  // namespace
}  // namespace sb
