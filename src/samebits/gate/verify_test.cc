// verify on the tiny model: every scenario of every profile is equal, for any number of ranks and
// on guarded memory, and the comparison has something to compare.
#include "samebits/gate/verify.h"

#include <nlohmann/json.hpp>
#include <set>

#include "samebits/gate/engine_testing.h"
#include "samebits/gate/scenarios.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

VerifyReport verified(const EngineOptions& options, const VerifyOptions& what = {}) {
  Engine engine = open_engine(options);
  auto report = verify(engine, what);
  EXPECT_TRUE(report) << report.error().text();
  return report.value_or(VerifyReport{});
}

void expect_equal(const VerifyReport& report) {
  EXPECT_EQ(report.code, Code::kEqual);
  EXPECT_GT(report.compared, 0);
  EXPECT_EQ(report.differing, 0);
  EXPECT_GT(report.digests, 0);
  for (const auto& s : report.scenarios) {
    EXPECT_EQ(s.code, Code::kEqual) << s.group << ": " << s.name << ": " << s.finding;
    EXPECT_GT(s.compared, 0) << s.group << ": " << s.name;
    EXPECT_EQ(s.differing, 0) << s.group << ": " << s.name;
    EXPECT_EQ(s.finding, "");
  }
}

class VerifyTiny : public testing::TestWithParam<const char*> {};

TEST_P(VerifyTiny, EveryScenarioIsEqualAndTheModelSpreads) {
  const VerifyReport report = verified({.profile = GetParam(), .threads = 2});
  expect_equal(report);
  EXPECT_EQ(report.scenarios.size(),
            all_scenarios(preset_architecture("tiny").value(), 300).size());
  EXPECT_EQ(report.header.profile, GetParam());
  for (const auto& s : report.scenarios) {
    EXPECT_TRUE(s.name != "packed" || s.digests > 10000);
  }
  // A model whose logits hardly differ would pass anything.
  const Spread& spread = report.spread;
  EXPECT_TRUE(spread.healthy());
  EXPECT_GE(spread.distinct * 100, spread.logprobs * 99);
  EXPECT_GT(spread.score_sigma_min, 1);
  EXPECT_LT(spread.score_sigma_max, 6);
  EXPECT_GT(spread.max_abs_logit, 20);
  EXPECT_LT(spread.lowest_logprob, -12);
}

INSTANTIATE_TEST_SUITE_P(All, VerifyTiny, testing::Values("sm90", "gfx942", "ieee"),
                         [](const auto& param) { return std::string(param.param); });

class VerifyRanks : public testing::TestWithParam<int> {};

TEST_P(VerifyRanks, VirtualRanksAreEqualToOneRank) {
  expect_equal(verified({.threads = 2, .tp = GetParam()}, {.rows = few_rows()}));
}

INSTANTIATE_TEST_SUITE_P(All, VerifyRanks, testing::Values(2, 4, 8));

TEST(Verify, MemoryThatFaultsOutsideOperatorsIsNeverTouched) {
  expect_equal(verified({.threads = 2, .guard = true}, {}));
}

TEST(Verify, HybridAttentionIsAStrictSubset) {
  std::set<std::pair<std::string, std::string>> all, hybrid;
  for (const auto& s : verified({.threads = 2}, {.rows = few_rows()}).scenarios) {
    all.insert({s.group, s.name});
  }
  const auto report = verified({.threads = 2}, {.rows = few_rows(), .suite = "hybrid-attention"});
  expect_equal(report);
  for (const auto& s : report.scenarios) hybrid.insert({s.group, s.name});
  EXPECT_LT(hybrid.size(), all.size());
  for (const auto& name : hybrid) EXPECT_TRUE(all.contains(name)) << name.second;
}

TEST(Verify, GivenRowsAreTheOnesCompared) {
  const std::vector<Sequence> rows = {row_of("mine", 12, 4), row_of("mine too", 2, 1)};
  const VerifyReport report = verified({.threads = 2}, {.rows = rows});
  expect_equal(report);
  EXPECT_EQ(report.spread.logprobs, 8 + 1);
  for (const auto& s : report.scenarios) {
    EXPECT_NE(s.group, "long");
    EXPECT_EQ(s.compared, s.name == "generated, then rescored" ? 80 : 9) << s.name;
  }
}

TEST(Verify, GivenRowsMayHoldAnyIdOfTheVocabulary) {
  Sequence every = row_of("every", 9, 2);
  every.tokens = {2, 0, 1, 7, 2499, 3, 4, 5, 6};
  expect_equal(verified({.threads = 2}, {.rows = {every}}));
}

TEST(Verify, OneRowOfTwoTokensIsEnough) {
  expect_equal(verified({.threads = 1}, {.rows = {row_of("least", 2, 1)}}));
}

TEST(Verify, WhatCannotRunIsRefused) {
  Engine engine = open_engine();
  const auto code = [&](const VerifyOptions& what) {
    const auto report = verify(engine, what);
    EXPECT_FALSE(report);
    return report ? Code::kEqual : report.error().code;
  };
  EXPECT_EQ(code({.suite = "hybrid"}), Code::kUsage);
  EXPECT_EQ(code({.suite = ""}), Code::kUsage);
  Sequence outside = row_of("outside", 5, 1);
  outside.tokens[3] = 2500;
  EXPECT_NE(code({.rows = {outside}}), Code::kEqual);
  EXPECT_EQ(code({.interrupted = [] { return true; }}), Code::kInterrupted);
}

TEST(Verify, ProgressCountsScenarios) {
  int64_t calls = 0, last = -1;
  VerifyOptions what{.rows = {row_of("a", 3, 1)}};
  what.progress = [&](const std::string& name, int64_t done, int64_t total) {
    EXPECT_THAT(name, HasSubstr(": "));
    EXPECT_EQ(done, last + 1);
    EXPECT_LT(done, total);
    last = done;
    ++calls;
  };
  const auto report = verified({.threads = 2}, what);
  EXPECT_EQ(calls, static_cast<int64_t>(report.scenarios.size()));
}

TEST(Verify, ReportsAsTextJsonAndHtmlSayTheSame) {
  const VerifyOptions what{.rows = few_rows(), .suite = "hybrid-attention"};
  const VerifyReport green = verified({.threads = 2}, what);
  const VerifyReport red = verified({.threads = 2, .inject = {"window-plus-1"}}, what);
  EXPECT_THAT(verify_text(green), HasSubstr("EQUAL"));
  EXPECT_THAT(verify_text(green), HasSubstr("0 differ"));
  EXPECT_THAT(verify_text(red), HasSubstr("DRIFT"));
  EXPECT_THAT(verify_text(red), HasSubstr("layers.0.attn.ctx, row middle, position 24"));
  EXPECT_THAT(verify_html(red), HasSubstr("layers.0.attn.ctx, row middle, position 24"));
  const auto j = nlohmann::json::parse(verify_json(red));
  EXPECT_EQ(j["code"], 1);
  EXPECT_EQ(j["compared"], red.compared);
  EXPECT_EQ(j["differing"], red.differing);
  ASSERT_EQ(j["scenarios"].size(), red.scenarios.size());
  EXPECT_EQ(j["scenarios"][0]["boundary"], "layers.0.attn.ctx");
  EXPECT_EQ(j["scenarios"][0]["position"], 24);
  EXPECT_EQ(nlohmann::json::parse(verify_json(green))["code"], 0);
}

TEST(VerifyRows, AreTheSameAlwaysAndInsideTheVocabulary) {
  const Architecture arch = preset_architecture("tiny").value();
  const auto rows = verify_rows(arch, 300);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows.back().size(), 300);
  EXPECT_EQ(verify_rows(arch, 0).size(), 5u);
  for (const auto& r : rows) {
    EXPECT_GE(r.prompt_len, 1);
    EXPECT_GT(r.num_scored(), 0);
    for (const int32_t t : r.tokens) EXPECT_TRUE(t >= 0 && t < arch.vocab) << t;
  }
  const auto again = verify_rows(arch, 300);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].tokens, again[i].tokens);
}

}  // namespace
}  // namespace sb
