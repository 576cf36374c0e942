// The chain of sealed records and the run.json that holds it: what was not sealed as it stands is
// broken data, and so is a file that is not exactly what was written.
#include <nlohmann/json.hpp>

#include "samebits/base/file.h"
#include "samebits/gate/engine_testing.h"
#include "samebits/gate/record_gate.h"
#include "samebits/gate/score_run.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

class RecordChain : public testing::Test {
 protected:
  Engine engine_ = open_engine();
  std::vector<Record> records_ =
      engine_.score({row_of("a", 5, 2)}, engine_.run_options(schedule_of("decode")))
          .value()
          .records;

  Code check(const std::vector<SealedRecord>& sealed) {
    const auto status =
        check_sealed(sealed, engine_.model->arch, {.profile = "sm90", .paged = true});
    return status ? Code::kEqual : status.error().code;
  }
  std::string written() {
    const std::string path = scratch() + "/out.run.json";
    const RunInfo info{.command = "score", .header = engine_.header({}), .isa = "plain"};
    const auto status = write_run_json(path, /*force=*/true, info, records_);
    EXPECT_TRUE(status) << status.error().text();
    return path;
  }
  // The code of reading (and, if that works, of checking) the written file after `damage`.
  Code read_damaged(const std::function<void(nlohmann::json&)>& damage) {
    auto j = nlohmann::json::parse(read_text(written()).value());
    damage(j);
    const auto read = read_run_records(put("damaged.run.json", j.dump()));
    return read ? check(*read) : read.error().code;
  }
};

TEST_F(RecordChain, AsSealedItHolds) { EXPECT_EQ(check(seal_records(records_)), Code::kEqual); }

TEST_F(RecordChain, ALineAlteredWithoutSealingIsBroken) {
  for (size_t i = 0; i < records_.size(); ++i) {
    auto sealed = seal_records(records_);
    sealed[i].record.launches += 1;
    EXPECT_EQ(check(sealed), Code::kBrokenData) << i;
  }
}

TEST_F(RecordChain, SwappedLinesAreBroken) {
  for (size_t i = 0; i + 1 < records_.size(); ++i) {
    auto sealed = seal_records(records_);
    std::swap(sealed[i], sealed[i + 1]);
    EXPECT_EQ(check(sealed), Code::kBrokenData) << i;
  }
}

TEST_F(RecordChain, ALineTakenOutBeforeTheEndIsBroken) {
  for (size_t i = 0; i + 1 < records_.size(); ++i) {
    auto sealed = seal_records(records_);
    sealed.erase(sealed.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(check(sealed), Code::kBrokenData) << i;
  }
}

TEST_F(RecordChain, ALineTakenFromTheEndIsMissed) {
  auto sealed = seal_records(records_);
  sealed.pop_back();
  EXPECT_EQ(check(sealed), Code::kDrift);
}

TEST_F(RecordChain, AnAlteredLinkIsBroken) {
  for (size_t i = 0; i < records_.size(); ++i) {
    auto sealed = seal_records(records_);
    sealed[i].chain[i % 64] ^= 1;
    EXPECT_EQ(check(sealed), Code::kBrokenData) << i;
    sealed[i].chain.clear();
    EXPECT_EQ(check(sealed), Code::kBrokenData) << i;
  }
}

TEST_F(RecordChain, RecordsReadFromRunJsonAreThoseWritten) {
  const auto read = read_run_records(written());
  ASSERT_TRUE(read) << read.error().text();
  const auto sealed = seal_records(records_);
  ASSERT_EQ(read->size(), sealed.size());
  for (size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_EQ((*read)[i].record, sealed[i].record);
    EXPECT_EQ((*read)[i].chain, sealed[i].chain);
  }
  EXPECT_EQ(check(*read), Code::kEqual);
  EXPECT_EQ(read_damaged([](auto&) {}), Code::kEqual);
}

TEST_F(RecordChain, RunJsonIsNotReplacedUnlessForced) {
  const std::string path = written();
  const auto again = write_run_json(path, /*force=*/false, {}, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kUsage);
  EXPECT_TRUE(read_run_records(path));
}

TEST_F(RecordChain, AFileThatWasEditedIsBroken) {
  using Json = nlohmann::json;
  const std::pair<const char*, std::function<void(Json&)>> edits[] = {
      {"an empty object", [](Json& j) { j = Json::object(); }},
      {"a list", [](Json& j) { j = Json::array({j}); }},
      {"another version", [](Json& j) { j["samebits"] = "run/2"; }},
      {"no records", [](Json& j) { j.erase("records"); }},
      {"records by name", [](Json& j) { j["records"] = Json::object({{"a", j["records"][0]}}); }},
      {"an empty list", [](Json& j) { j["records"] = Json::array(); }},
      {"a number as a record", [](Json& j) { j["records"][2] = 7; }},
      {"a missing field", [](Json& j) { j["records"][2].erase("split"); }},
      {"a missing link", [](Json& j) { j["records"][2].erase("chain"); }},
      {"a field too many", [](Json& j) { j["records"][2]["note"] = "fine"; }},
      {"a number as text", [](Json& j) { j["records"][2]["op"] = 3; }},
      {"a text as number", [](Json& j) { j["records"][2]["rows"] = "5"; }},
      {"a number as flag", [](Json& j) { j["records"][2]["fallback"] = 0; }},
      {"a fraction",
       [](Json& j) { j["records"][2]["rows"] = j["records"][2]["rows"].get<int>() + 0.5; }},
      {"a flag as number", [](Json& j) { j["records"][0]["launches"] = true; }},
      {"another value", [](Json& j) { j["records"][2]["launches"] = 77; }},
      {"another link", [](Json& j) { j["records"][2]["chain"] = std::string(64, '0'); }},
      {"a record less", [](Json& j) { j["records"].erase(2); }},
  };
  for (const auto& [what, edit] : edits) EXPECT_EQ(read_damaged(edit), Code::kBrokenData) << what;
}

TEST_F(RecordChain, AFileThatIsNotJsonIsBrokenAndAMissingOneIsUsage) {
  const std::string text = read_text(written()).value();
  for (const std::string& bad :
       {std::string(), std::string("x"), text.substr(0, text.size() / 2), "[" + text}) {
    const auto read = read_run_records(put("bad.run.json", bad));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kBrokenData);
    EXPECT_THAT(read.error().text(), HasSubstr("bad.run.json"));
  }
  const auto missing = read_run_records(scratch() + "/none.run.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUsage);
}

}  // namespace
}  // namespace sb
