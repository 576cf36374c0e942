// The record gate on true records: clean runs are green, and any record that is missing, doubled or
// altered in any field turns the gate red even when the chain was sealed again.
#include "samebits/gate/record_gate.h"

#include <nlohmann/json.hpp>
#include <set>

#include "samebits/gate/engine_testing.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

const std::vector<std::string> kSchedules = {"train", "prefill", "chunked:3", "decode"};

std::vector<Sequence> short_rows() { return {row_of("a", 5, 2), row_of("b", 9, 1)}; }

RecordExpectation expectation(const Engine& engine, const std::string& schedule) {
  return {.profile = engine.options.profile,
          .tp = engine.options.tp,
          .paged = schedule != "train",
          .sampled = schedule == "rollout"};
}

// Records of a run of this schedule; "rollout" is one that draws.
std::vector<Record> records_of(Engine& engine, const std::string& schedule) {
  if (schedule != "rollout") {
    return engine.score(short_rows(), engine.run_options(schedule_of(schedule))).value().records;
  }
  RolloutOptions options;
  options.session = engine.run_options(schedule_of("decode")).session;
  options.max_new = 3;
  auto prompts = short_rows();
  for (auto& p : prompts) p.tokens.resize(static_cast<size_t>(p.prompt_len));
  return rollout_ranks(*engine.model, *engine.device, *engine.pool, engine.options.tp, prompts,
                       options)
      .value()
      .records;
}

Code gate(const std::vector<Record>& records, const Architecture& arch,
          const RecordExpectation& expect) {
  const Status plain = check_records(records, arch, expect);
  const Status sealed = check_sealed(seal_records(records), arch, expect);
  EXPECT_EQ(plain.has_value(), sealed.has_value());
  return sealed ? Code::kEqual : sealed.error().code;
}

class RecordGateOfAProfile : public testing::TestWithParam<const char*> {};

TEST_P(RecordGateOfAProfile, CleanRunsOfEveryScheduleAreGreen) {
  for (const int tp : {1, 4}) {
    Engine engine = open_engine({.profile = GetParam(), .threads = 2, .tp = tp});
    for (const char* schedule : {"train", "prefill", "chunked:3", "decode", "rollout"}) {
      const auto records = records_of(engine, schedule);
      const auto green =
          check_sealed(seal_records(records), engine.model->arch, expectation(engine, schedule));
      EXPECT_TRUE(green) << schedule << " tp " << tp << ": " << green.error().text();
      EXPECT_GT(records.size(), 100u) << schedule;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordGateOfAProfile, testing::Values("sm90", "gfx942", "ieee"));

TEST(RecordGate, AFaultyRunHasTheRecordsOfACleanOne) {
  Engine clean = open_engine(), faulty = open_engine({.threads = 2, .inject = {"window-plus-1"}});
  for (const auto& schedule : kSchedules) {
    EXPECT_EQ(records_of(clean, schedule), records_of(faulty, schedule)) << schedule;
  }
}

TEST(RecordGate, WithoutAnyOneRecordItIsRed) {
  Engine engine = open_engine();
  for (const char* schedule : {"train", "prefill", "chunked:3", "decode", "rollout"}) {
    const auto records = records_of(engine, schedule);
    const auto expect = expectation(engine, schedule);
    for (size_t i = 0; i < records.size(); ++i) {
      auto fewer = records;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(gate(fewer, engine.model->arch, expect), Code::kDrift)
          << schedule << " without " << record_line(records[i]);
    }
  }
}

TEST(RecordGate, TheSameRecordTwiceIsRed) {
  Engine engine = open_engine();
  const auto records = records_of(engine, "decode");
  for (const auto& r : records) {
    auto more = records;
    more.push_back(r);
    EXPECT_EQ(gate(more, engine.model->arch, expectation(engine, "decode")), Code::kDrift);
  }
}

struct Alteration {
  const char* field;
  void (*alter)(Record&);
};

const Alteration kAlterations[] = {
    {"op", [](Record& r) { r.op += "x"; }},
    {"op", [](Record& r) { r.op = r.op == "rmsnorm" ? "rope" : "rmsnorm"; }},
    {"site", [](Record& r) { r.site = r.site == "embed" ? "logp" : "embed"; }},
    {"site", [](Record& r) { r.site = "layers.9.out"; }},
    {"layer", [](Record& r) { r.layer = r.layer < 0 ? 0 : -1; }},
    {"layer", [](Record& r) { r.layer += 1; }},
    {"layer_type",
     [](Record& r) { r.layer_type = r.layer_type == "global" ? "sliding" : "global"; }},
    {"contract", [](Record& r) { r.contract.back() = '2'; }},
    {"contract_digest", [](Record& r) { r.contract_digest[5] ^= 1; }},
    {"implementation", [](Record& r) { r.implementation.replace(0, 3, "gpu"); }},
    {"schedule", [](Record& r) { r.schedule = r.schedule == "row" ? "tile" : "row"; }},
    {"split", [](Record& r) { r.split += "2"; }},
    {"accumulator", [](Record& r) { r.accumulator = "bf16"; }},
    {"profile", [](Record& r) { r.profile = "ieee"; }},
    {"backend_requested", [](Record& r) { r.backend_requested = "cuda"; }},
    {"backend_actual", [](Record& r) { r.backend_actual = "cuda"; }},
    {"device", [](Record& r) { r.device = "cpu:1"; }},
    {"dtype", [](Record& r) { r.dtype = r.dtype == "f32" ? "bf16" : "f32"; }},
    {"shape", [](Record& r) { r.shape += "0"; }},
    {"shape", [](Record& r) { r.shape = r.shape.empty() ? "N=1" : ""; }},
    {"fallback", [](Record& r) { r.fallback = true; }},
    {"launches", [](Record& r) { r.launches += 1; }},
    {"launches", [](Record& r) { r.launches = 0; }},
    {"launches", [](Record& r) { r.launches = -r.launches; }},
    {"rows", [](Record& r) { r.rows += 1; }},
    {"rows", [](Record& r) { r.rows = 0; }},
};

TEST(RecordGate, TheAlterationsAboveReachEveryFieldAndOnlyIt) {
  Engine engine = open_engine();
  const auto records = records_of(engine, "decode");
  const auto before = nlohmann::json::parse(record_line(records[3]));
  std::set<std::string> all, reached;
  for (const auto& [key, value] : before.items()) all.insert(key);
  for (const auto& a : kAlterations) {
    Record r = records[3];
    a.alter(r);
    const auto after = nlohmann::json::parse(record_line(r));
    for (const auto& key : all) EXPECT_EQ(before[key] != after[key], key == a.field) << key;
    reached.insert(a.field);
  }
  EXPECT_EQ(reached, all);
}

class RecordGateOfASchedule : public testing::TestWithParam<const char*> {};

TEST_P(RecordGateOfASchedule, AnyFieldOfAnyRecordAlteredIsRed) {
  Engine engine = open_engine();
  const auto records = records_of(engine, GetParam());
  const auto expect = expectation(engine, GetParam());
  const Architecture& arch = engine.model->arch;
  for (size_t i = 0; i < records.size(); ++i) {
    for (const auto& a : kAlterations) {
      auto altered = records;
      a.alter(altered[i]);
      const Status status = check_records(altered, arch, expect);
      EXPECT_FALSE(status) << a.field << " of " << record_line(records[i]);
      if (!status) {
        EXPECT_EQ(status.error().code, Code::kDrift);
      }
    }
  }
}

// Alters every `stride`-th record and seals the chain again.
void expect_red_when_sealed_again(const std::string& schedule, size_t stride) {
  Engine engine = open_engine();
  const auto records = records_of(engine, schedule);
  const auto expect = expectation(engine, schedule);
  for (size_t i = 0; i < records.size(); i += stride) {
    for (const auto& a : kAlterations) {
      auto altered = records;
      a.alter(altered[i]);
      EXPECT_EQ(gate(altered, engine.model->arch, expect), Code::kDrift)
          << a.field << " of " << record_line(records[i]);
    }
  }
}

TEST_P(RecordGateOfASchedule, SealingAlteredRecordsAgainDoesNotHelp) {
  expect_red_when_sealed_again(GetParam(), 13);
}

TEST_P(RecordGateOfASchedule, SealingAnyAlteredRecordAgainDoesNotHelpFull) {
  expect_red_when_sealed_again(GetParam(), 1);
}

TEST_P(RecordGateOfASchedule, TheImplementationOfAnotherOperatorIsRed) {
  Engine engine = open_engine();
  const auto records = records_of(engine, GetParam());
  std::set<std::string> known;
  for (const auto& r : records) known.insert(r.implementation);
  EXPECT_GT(known.size(), 10u);
  for (size_t i = 0; i < records.size(); ++i) {
    for (const auto& other : known) {
      if (other == records[i].implementation) continue;
      auto altered = records;
      altered[i].implementation = other;
      EXPECT_FALSE(check_records(altered, engine.model->arch, expectation(engine, GetParam())))
          << other << " as " << record_line(records[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordGateOfASchedule,
                         testing::Values("train", "prefill", "chunked:3", "decode", "rollout"),
                         [](const auto& param) { return std::string(param.param).substr(0, 7); });

TEST(RecordGate, RecordsOfAnotherKindOfRunAreRed) {
  Engine engine = open_engine();
  const Architecture& arch = engine.model->arch;
  const auto train = records_of(engine, "train"), decode = records_of(engine, "decode");
  const auto rollout = records_of(engine, "rollout");
  EXPECT_EQ(gate(train, arch, expectation(engine, "decode")), Code::kDrift);
  EXPECT_EQ(gate(decode, arch, expectation(engine, "train")), Code::kDrift);
  EXPECT_EQ(gate(decode, arch, expectation(engine, "rollout")), Code::kDrift);
  EXPECT_EQ(gate(rollout, arch, expectation(engine, "decode")), Code::kDrift);
  auto expect = expectation(engine, "train");
  expect.profile = "gfx942";
  EXPECT_EQ(gate(train, arch, expect), Code::kDrift);
  expect = expectation(engine, "train");
  expect.tp = 2;
  EXPECT_EQ(gate(train, arch, expect), Code::kDrift);
  expect = expectation(engine, "train");
  expect.backend = "cuda";
  EXPECT_EQ(gate(train, arch, expect), Code::kDrift);
  EXPECT_EQ(gate(train, *preset_architecture("mini"), expectation(engine, "train")), Code::kDrift);
}

TEST(RecordGate, TheMessageNamesOperatorSiteFieldAndBothValues) {
  Engine engine = open_engine();
  auto records = records_of(engine, "train");
  for (auto& r : records) {
    if (r.site == "layers.3.mlp.act") r.backend_actual = "hip";
  }
  const auto red = check_records(records, engine.model->arch, expectation(engine, "train"));
  ASSERT_FALSE(red);
  EXPECT_THAT(red.error().text(), HasSubstr("gelu_mul at layers.3.mlp.act"));
  EXPECT_THAT(red.error().text(), HasSubstr("backend_actual is 'hip', must be 'cpu'"));
}

TEST(RecordGate, NoRecordsAreBrokenData) {
  Engine engine = open_engine();
  EXPECT_EQ(gate({}, engine.model->arch, expectation(engine, "train")), Code::kBrokenData);
}

}  // namespace
}  // namespace sb
