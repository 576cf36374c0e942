// Audits of rollouts on the tiny model: equal bits, one flipped bit, and everything a log may do
// wrong, each with its code.
#include "samebits/gate/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/dist/virtual_ranks.h"
#include "samebits/gate/engine_testing.h"

namespace sb {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_engine::open_engine;
using testing_engine::row_of;

// What a rollout of the engine logs: `rows` rows of 8 drawn tokens.
TokenLog rolled(Engine& engine, int rows, float temperature = 1) {
  std::vector<Sequence> prompts;
  for (int i = 0; i < rows; ++i) {
    prompts.push_back(row_of("r" + std::to_string(i), 3 + i % 5, 1));
    prompts.back().prompt_len = static_cast<int>(prompts.back().size());
  }
  Schedule decode;
  decode.kind = ScheduleKind::kDecode;
  RunOptions run = engine.run_options(decode);
  run.session.temperature = temperature;
  RolloutOptions options;
  options.session = run.session;
  options.max_new = 8;
  options.seed = 5;
  auto result = rollout_ranks(*engine.model, *engine.device, *engine.pool, 1, prompts, options);
  SB_ASSERT(result, "a rollout of a test");
  TokenLog log{.header = engine.header(run), .rows = {}};
  for (size_t i = 0; i < result->sequences.size(); ++i) {
    const Sequence& s = result->sequences[i];
    TokenRow row;
    row.id = s.id;
    row.tokens = s.tokens;
    row.prompt_len = s.prompt_len;
    row.logprobs = result->logprobs[i];
    row.temperature = temperature;
    row.suppress = std::vector<int32_t>{};
    log.rows.push_back(std::move(row));
  }
  return log;
}

AuditReport audited(Engine& engine, const TokenLog& log, const AuditOptions& options = {}) {
  auto r = audit(engine, log, "log.jsonl", "tiny", options);
  if (!r) ADD_FAILURE() << r.error().text();
  return r ? *r : AuditReport{};
}

TEST(DrawRows, SeedsDecideAndEveryRowIsDrawnOnce) {
  EXPECT_EQ(draw_rows(64, 8, 1), draw_rows(64, 8, 1));
  EXPECT_NE(draw_rows(64, 8, 1), draw_rows(64, 8, 2));
  EXPECT_THAT(draw_rows(5, 5, 9), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(draw_rows(3, 100, 9), ElementsAre(0, 1, 2));
  std::vector<int> hits(10);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const int64_t i : draw_rows(10, 3, seed)) ++hits[static_cast<size_t>(i)];
  }
  for (const int h : hits) EXPECT_GT(h, 30);  // 60 on average
}

TEST(Audit, ARolloutHasTheRescoredBitsAndOneFlippedBitIsNamed) {
  Engine engine = open_engine();
  TokenLog log = rolled(engine, 64);
  AuditOptions options;
  options.sample = 4;
  options.seed = 1;
  AuditReport r = audited(engine, log, options);
  EXPECT_EQ(r.code, Code::kEqual) << r.finding;
  EXPECT_EQ(r.drawn.size(), 4u);
  EXPECT_EQ(r.comparison.compared, 32);
  EXPECT_THAT(r.finding, HasSubstr("all 32 log-probabilities of 4 rows drawn from 64"));

  TokenRow& row = log.rows[static_cast<size_t>(r.drawn[2])];
  float& x = row.logprobs->at(5);
  const float was = x;
  x = bits_float(float_bits(x) ^ 1);
  r = audited(engine, log, options);
  EXPECT_EQ(r.code, Code::kDrift);
  EXPECT_THAT(r.finding, HasSubstr("1 of 32 log-probabilities differ, first in row \"" + row.id +
                                   "\" at token " + std::to_string(row.prompt_len + 5)));
  EXPECT_EQ(r.comparison.first->bits_a, float_bits(x));
  EXPECT_EQ(r.comparison.first->bits_b, float_bits(was));
  const std::string text = audit_text(r);
  EXPECT_THAT(text, testing::StartsWith("DRIFT  1 of 32"));
  for (const int64_t i : r.drawn) {
    EXPECT_THAT(text, HasSubstr("\"" + log.rows[static_cast<size_t>(i)].id + "\""));
  }
  const auto j = nlohmann::json::parse(audit_json(r));
  EXPECT_EQ(j["code"], 1);
  EXPECT_EQ(j["drawn"].get<std::vector<int64_t>>(), r.drawn);
  EXPECT_EQ(j["comparison"]["differing"], 1);
  EXPECT_THAT(audit_html(r), HasSubstr("DRIFT"));

  // In a row that is not drawn it is not seen; with all rows it is.
  x = was;
  size_t other = 0;
  while (std::find(r.drawn.begin(), r.drawn.end(), other) != r.drawn.end()) ++other;
  float& y = log.rows[other].logprobs->at(0);
  y = bits_float(float_bits(y) ^ 1);
  EXPECT_EQ(audited(engine, log, options).code, Code::kEqual);
  options.sample.reset();
  r = audited(engine, log, options);
  EXPECT_EQ(r.code, Code::kDrift);
  EXPECT_EQ(r.drawn.size(), 64u);
}

TEST(Audit, TemperatureAndSuppressedIdsOfTheLogAreUsed) {
  Engine engine = open_engine();
  TokenLog log = rolled(engine, 6, 0.7f);
  EXPECT_EQ(audited(engine, log).code, Code::kEqual);
  AuditOptions options;
  options.temperature = 1.0f;
  const auto refused = audit(engine, log, "log", "tiny", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kSemanticsDiffer);
  // A log of another engine states nothing; the command line does.
  log.header.reset();
  for (auto& row : log.rows) row.temperature.reset(), row.suppress.reset();
  options.temperature = 0.7f;
  const AuditReport r = audited(engine, log, options);
  EXPECT_EQ(r.code, Code::kEqual);
  EXPECT_THAT(r.notes, Contains(HasSubstr("states no profile")));
}

TEST(Audit, WhatGivesTheLogsBitsIsTheFinding) {
  Engine engine = open_engine();
  // Drawn at 0.49 and said to be 0.7: the temperature was applied twice.
  TokenLog log = rolled(engine, 4, 0.7f * 0.7f);
  log.header.reset();
  for (auto& row : log.rows) row.temperature = 0.7f;
  AuditReport r = audited(engine, log);
  EXPECT_EQ(r.code, Code::kSemanticsDiffer) << r.finding;
  EXPECT_THAT(r.finding, HasSubstr("the temperature 0.7 was applied twice"));
  // Raw log-probabilities in a log that says 0.7.
  log = rolled(engine, 4);
  log.header.reset();
  for (auto& row : log.rows) row.temperature = 0.7f;
  r = audited(engine, log);
  EXPECT_EQ(r.code, Code::kSemanticsDiffer);
  EXPECT_THAT(r.finding, HasSubstr("before the temperature 0.7 was applied"));
  // No temperature stated, 0.7 used; bits moved a little, as by other arithmetic.
  log = rolled(engine, 4, 0.7f);
  log.header.reset();
  for (auto& row : log.rows) row.temperature.reset();
  r = audited(engine, log);
  EXPECT_THAT(r.finding,
              HasSubstr("has the bits of temperature 0.7, which the log does not state"));
  for (auto& row : log.rows) {
    for (float& x : *row.logprobs) x *= 1.00001f;
  }
  r = audited(engine, log);
  EXPECT_EQ(r.code, Code::kSemanticsDiffer);
  EXPECT_THAT(r.finding, HasSubstr("is near temperature 0.7"));
  // Another profile.
  Engine ieee = open_engine({.profile = "ieee", .threads = 2});
  log = rolled(ieee, 4);
  log.header.reset();
  r = audited(engine, log);
  EXPECT_EQ(r.code, Code::kNotComparable);
  EXPECT_THAT(r.finding, HasSubstr("has the bits of profile ieee, not of sm90"));
}

TEST(Audit, HeadersThatDoNotFitAreRefusedBeforeAnythingRuns) {
  Engine engine = open_engine();
  const RunHeader good = engine.header(engine.run_options({}));
  EXPECT_TRUE(check_audit_header(good, engine, "log"));
  const auto code = [&](auto change) {
    RunHeader h = good;
    change(h);
    const Status s = check_audit_header(h, engine, "log");
    EXPECT_FALSE(s);
    return s ? Code::kEqual : s.error().code;
  };
  EXPECT_EQ(code([](RunHeader& h) { h.weights = "other"; }), Code::kWeightsDiffer);
  EXPECT_EQ(code([](RunHeader& h) { h.model = "other"; }), Code::kSemanticsDiffer);
  EXPECT_EQ(code([](RunHeader& h) { h.profile = "ieee"; }), Code::kNotComparable);
  EXPECT_EQ(code([](RunHeader& h) { h.contracts = "c:2", h.weights = "w"; }), Code::kNotComparable);
}

TEST(Audit, NothingToCompareIsBrokenData) {
  Engine engine = open_engine();
  TokenLog log = rolled(engine, 3);
  TokenLog none = log;
  none.rows[1].logprobs.reset();
  EXPECT_EQ(audit(engine, none, "log", "tiny", {}).error().code, Code::kBrokenData);
  TokenLog masked = log;
  masked.rows[0].mask = std::vector<uint8_t>(8, 0);
  AuditReport r = audited(engine, masked);
  EXPECT_EQ(r.code, Code::kEqual);
  EXPECT_THAT(r.drawn, ElementsAre(1, 2));
  for (auto& row : masked.rows) row.mask = std::vector<uint8_t>(8, 0);
  r = audited(engine, masked);
  EXPECT_EQ(r.code, Code::kBrokenData);
  EXPECT_THAT(r.finding, HasSubstr("nothing was compared"));
  log.rows[2].logprobs->at(1) = std::numeric_limits<float>::quiet_NaN();
  r = audited(engine, log);
  EXPECT_EQ(r.code, Code::kBrokenData);
  EXPECT_EQ(r.comparison.compared, 23);
  AuditOptions options;
  options.sample = 0;
  EXPECT_EQ(audit(engine, log, "log", "tiny", options).error().code, Code::kUsage);
}

TEST(Audit, AnInterruptLeavesNoVerdict) {
  Engine engine = open_engine();
  AuditOptions options;
  options.interrupted = [] { return true; };
  const auto r = audit(engine, rolled(engine, 2), "log", "tiny", options);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::kInterrupted);
}

}  // namespace
}  // namespace sb
