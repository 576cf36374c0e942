// Logs of two engines: JSON lines without any header, paired by id in any order; broken data,
// semantics and what a log did to its numbers are told apart before a bit is blamed on an operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/base/rng.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/engine_testing.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_engine::put;

constexpr int kPrompt = 3, kScored = 16;

struct Row {
  std::string id;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::string more;  // further members
};

// Six rows of 16 scored tokens, log-probabilities spread over 0 … −9, all different.
std::vector<Row> sample() {
  std::vector<Row> rows;
  CounterRng rng(7);
  for (int r = 0; r < 6; ++r) {
    Row row{"r" + std::to_string(r), {}, {}, {}};
    for (int i = 0; i < kPrompt + kScored; ++i) {
      row.tokens.push_back(static_cast<int32_t>(rng.below(1000)));
    }
    for (int i = 0; i < kScored; ++i) {
      const float u = rng.uniform();
      row.logprobs.push_back(-9 * u * u - 0.001f);
    }
    rows.push_back(row);
  }
  return rows;
}

std::string number(float x) {
  if (std::isnan(x)) return "NaN";  // as Python writes it
  if (std::isinf(x)) return x < 0 ? "-Infinity" : "Infinity";
  return shortest(x);
}

std::string text(const std::vector<Row>& rows, const std::string& key = "logprobs") {
  std::string out;
  for (const Row& r : rows) {
    out += "{\"id\":" + json_string(r.id) + ",\"tokens\":[";
    for (size_t i = 0; i < r.tokens.size(); ++i) {
      out += (i ? "," : "") + std::to_string(r.tokens[i]);
    }
    out += "],\"prompt_len\":" + std::to_string(kPrompt) + ",\"" + key + "\":[";
    for (size_t i = 0; i < r.logprobs.size(); ++i) out += (i ? "," : "") + number(r.logprobs[i]);
    out += "]" + r.more + "}\n";
  }
  return out;
}

Result<Comparison> compared(const std::string& a, const std::string& b,
                            const CompareOptions& options = {}) {
  return compare_files(put("a.jsonl", a), put("b.jsonl", b), options);
}
Comparison compared(const std::vector<Row>& a, const std::vector<Row>& b,
                    const CompareOptions& options = {}) {
  auto c = compared(text(a), text(b), options);
  if (!c) ADD_FAILURE() << c.error().text();
  return c ? *c : Comparison{};
}

// Every value through f.
template <class F>
std::vector<Row> changed(std::vector<Row> rows, F f) {
  for (Row& r : rows) {
    for (float& x : r.logprobs) x = f(x);
  }
  return rows;
}

ScoreFile scores_of(const std::vector<Row>& rows) {
  ScoreFile f;
  f.header = {.model = "m",
              .weights = "w",
              .contracts = "c:1",
              .profile = "sm90",
              .temperature = 1,
              .suppress = {},
              .schedule = "train"};
  for (const Row& r : rows) {
    f.rows.push_back({r.id, token_digest(r.tokens), kPrompt, r.logprobs});
  }
  return f;
}

std::string score_text(const ScoreFile& f) {
  std::string out = score_header_line(f.header);
  for (const auto& row : f.rows) out += score_row_line(row);
  return out;
}

TEST(CompareLogs, EqualInAnyFileOrderDecimalOrHex) {
  auto a = sample(), b = sample();
  std::reverse(b.begin(), b.end());
  EXPECT_EQ(compared(a, b).code, Code::kEqual);
  // The same bits as hex, under another key.
  std::string hex;
  for (const Row& r : b) {
    nlohmann::json j = {{"id", r.id}, {"tokens", r.tokens}, {"prompt_len", kPrompt}};
    for (const float x : r.logprobs) j["rollout_log_probs"].push_back(bits_hex(x));
    hex += j.dump() + "\n";
  }
  CompareOptions options;
  ASSERT_TRUE(add_key_rename("logprobs=rollout_log_probs", options.token_rows));
  const auto c = compared(text(a, "rollout_log_probs"), hex, options);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->code, Code::kEqual) << c->finding;
  EXPECT_EQ(c->compared, 6 * kScored);
  EXPECT_THAT(c->notes, Contains(HasSubstr("A and B are external logs")));
}

TEST(CompareLogs, OneFileMayHoldBothStreams) {
  auto rows = sample();
  for (Row& r : rows) {
    r.more = ",\"log_probs\":[";
    for (size_t i = 0; i < r.logprobs.size(); ++i) {
      r.more += (i ? "," : "") + number(i == 4 ? r.logprobs[i] * 2 : r.logprobs[i]);
    }
    r.more += "]";
  }
  const std::string dump = text(rows, "rollout_log_probs");
  CompareOptions options;
  ASSERT_TRUE(add_key_rename("logprobs=rollout_log_probs", options.token_rows_a));
  ASSERT_TRUE(add_key_rename("logprobs=log_probs", options.token_rows_b));
  const auto c = compared(dump, dump, options);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->code, Code::kDrift);
  EXPECT_EQ(c->differing, 6);
}

TEST(CompareLogs, DriftNamesRowTokenBothValuesAndEveryRow) {
  auto a = sample(), b = sample();
  b[2].logprobs[5] = bits_float(float_bits(b[2].logprobs[5]) ^ 1);
  b[4].logprobs[1] -= 0.5f;
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_THAT(c.finding,
              HasSubstr("2 of 96 log-probabilities differ, first in row \"r2\" at token 8"));
  EXPECT_EQ(c.first->ulp, 1);
  EXPECT_EQ(c.largest->id, "r4");
  ASSERT_EQ(c.rows.size(), 6u);
  EXPECT_EQ(c.rows[2].differing, 1);
  EXPECT_EQ(c.rows[4].max_abs_diff, 0.5);
  EXPECT_EQ(c.rows[0].differing, 0);
  EXPECT_THAT(c.hint, HasSubstr("samebits audit"));
}

TEST(CompareLogs, AgainstAScoreFile) {
  auto a = sample();
  std::swap(a[0], a[3]);
  auto c = compared(text(a), score_text(scores_of(sample())));
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->code, Code::kEqual);
  a[1].tokens[4] += 1;
  c = compared(text(a), score_text(scores_of(sample())));
  EXPECT_EQ(c->code, Code::kNotComparable);
  EXPECT_THAT(c->finding, HasSubstr("holds a digest of the ids"));
}

TEST(CompareLogs, AShiftIsNamedWithItsLag) {
  for (const int lag : {1, -1, 3, -5}) {
    auto b = sample();
    for (Row& r : b) {
      auto& x = r.logprobs;
      std::rotate(x.begin(), lag > 0 ? x.begin() + lag : x.end() + lag, x.end());
    }
    const Comparison c = compared(sample(), b);
    EXPECT_EQ(c.code, Code::kSemanticsDiffer) << lag << ": " << c.finding;
    EXPECT_THAT(c.signatures, ElementsAre("shift")) << lag;
    EXPECT_THAT(c.finding, HasSubstr(lag == 1 || lag == -1 ? "shifted by one"
                                     : lag == 3            ? "shifted by 3"
                                                           : "shifted by 5"));
    EXPECT_THAT(c.finding, HasSubstr((lag > 0 ? "A[i+" : "A[i−") + std::to_string(std::abs(lag))));
  }
}

TEST(CompareLogs, AShiftIsSeenThroughOtherArithmetic) {
  auto b = changed(sample(), [](float x) { return x * 1.0005f; });
  for (Row& r : b) std::rotate(r.logprobs.begin(), r.logprobs.begin() + 1, r.logprobs.end());
  const Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_THAT(c.finding, HasSubstr("shifted by one"));
}

TEST(CompareLogs, NoShiftIsSeenWhereThereIsNone) {
  auto a = sample();
  auto b = changed(sample(), [n = 0](float x) mutable { return x - (n++ % 2 ? 0.3f : 0.001f); });
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.code, Code::kDrift) << c.finding;
  EXPECT_THAT(c.signatures, testing::Not(Contains("shift")));
}

TEST(CompareLogs, AConstantBiasIsTheLogOfTheKeptMass) {
  // top-p 0.9 kept a mass of 0.895 and renormalised: log 0.895 = −0.1109.
  const auto b = changed(sample(), [](float x) { return x - 0.11093f; });
  const Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer) << c.finding;
  EXPECT_THAT(c.signatures, ElementsAre("constant-bias"));
  EXPECT_THAT(c.finding, HasSubstr("A is above B by 0.111 on every token"));
  EXPECT_THAT(c.finding, HasSubstr("S = 0.895"));
  EXPECT_THAT(compared(b, sample()).finding, HasSubstr("B is above A by 0.111"));
}

TEST(CompareLogs, AMassThatVariesByTokenIsANote) {
  const auto b = changed(
      sample(), [n = 0](float x) mutable { return x - 0.02f * static_cast<float>(n++ % 7); });
  const Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_THAT(c.signatures, ElementsAre("one-sided"));
  EXPECT_THAT(c.notes, Contains(HasSubstr("top-p")));
}

// Stated temperatures decide; nothing is guessed then.
TEST(CompareLogs, TemperaturesThatAreStatedDecide) {
  auto a = sample(), b = sample();
  for (Row& r : a) r.more = ",\"temperature\":0.7";
  for (Row& r : b) r.more = ",\"temperature\":1";
  Comparison c = compared(a, b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_THAT(c.finding, HasSubstr("the temperatures differ: A 0.7, B 1; 6 rows"));
  EXPECT_EQ(compared(a, a).code, Code::kEqual);
  CompareOptions options;
  options.temperature_a = 0.7f;
  options.temperature_b = 1.0f;
  c = compared(sample(), sample(), options);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_THAT(c.finding, HasSubstr("the temperatures differ"));
  // Against what the rows or the header say it is refused.
  auto refused = compared(text(b), text(sample()), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kSemanticsDiffer);
  EXPECT_THAT(refused.error().text(), HasSubstr("row \"r0\" states temperature 1"));
  refused = compared(score_text(scores_of(sample())), text(sample()), options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("its header states temperature 1"));
  options.temperature_a = -1.0f;
  EXPECT_EQ(compared(text(sample()), text(sample()), options).error().code, Code::kUsage);
}

// Rows of real softmaxes: V = 50 random logits, one token drawn, at two temperatures.
std::pair<std::vector<Row>, std::vector<Row>> softmax_rows(double ta, double tb) {
  auto a = sample(), b = sample();
  CounterRng rng(11);
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t i = 0; i < kScored; ++i) {
      double z[50], sum_a = 0, sum_b = 0;
      for (double& v : z) v = 8 * (static_cast<double>(rng.uniform()) - 0.5);
      const size_t y = rng.below(50);
      for (const double v : z) sum_a += std::exp(v / ta), sum_b += std::exp(v / tb);
      a[r].logprobs[i] = static_cast<float>(z[y] / ta - std::log(sum_a));
      b[r].logprobs[i] = static_cast<float>(z[y] / tb - std::log(sum_b));
    }
  }
  return {a, b};
}

TEST(CompareLogs, AnUnstatedTemperatureIsEstimatedAndSaidToBe) {
  for (const double t : {0.49, 0.7}) {
    const auto [a, b] = softmax_rows(1, t);
    const Comparison c = compared(a, b);
    EXPECT_EQ(c.code, Code::kSemanticsDiffer) << t << ": " << c.finding;
    EXPECT_THAT(c.signatures, ElementsAre("temperature"));
    EXPECT_THAT(c.finding, HasSubstr("B spreads wider than A"));
    EXPECT_THAT(c.finding, HasSubstr("not stated"));
    EXPECT_THAT(c.finding, HasSubstr("estimated from the selected log-probabilities of 96 tokens"));
    EXPECT_THAT(compared(b, a).finding, HasSubstr("A spreads wider than B"));
  }
  const auto [a, b] = softmax_rows(1, 1);
  EXPECT_EQ(compared(a, b).code, Code::kEqual);
}

TEST(CompareLogs, TwiceAppliedAlthoughBothStateIt) {
  auto [a, b] = softmax_rows(0.7, 0.49);
  for (Row& r : a) r.more = ",\"temperature\":0.7";
  for (Row& r : b) r.more = ",\"temperature\":0.7";
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_THAT(c.finding, HasSubstr("on one side only, or twice"));
  EXPECT_THAT(c.finding, HasSubstr("A temperature 0.7, B 0.7"));
}

TEST(CompareLogs, RoundingNoiseIsNoTemperature) {
  const auto b = changed(sample(), [n = 0](float x) mutable {
    return x + (++n % 3 == 0 ? 0.012f : -0.007f) * (x < -0.1f);
  });
  const Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kDrift) << c.finding;
}

TEST(CompareLogs, FillerZerosConstantStreamsAndPositivesAreBrokenData) {
  auto b = sample();
  std::fill(b[1].logprobs.begin() + 4, b[1].logprobs.begin() + 9, 0.0f);
  Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("B holds runs of exact 0.0"));
  EXPECT_THAT(c.finding, HasSubstr("\"r1\""));
  c = compared(sample(), changed(sample(), [](float) { return -1.0f; }));
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.signatures, Contains("constant-stream"));
  // Zeros on both sides are equal and still no measurement.
  const auto zeros = changed(sample(), [](float) { return 0.0f; });
  c = compared(zeros, zeros);
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("nothing was measured"));
  b = sample();
  b[3].logprobs[2] = 0.25f;
  c = compared(b, sample());
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("A holds 1 value that is no log-probability (1 positive)"));
  EXPECT_THAT(c.finding, HasSubstr("row \"r3\", token 5: 0.25"));
}

TEST(CompareLogs, NotANumberFailsIsCountedAndTheOtherRowsAreReported) {
  auto a = sample(), b = sample();
  a[0].logprobs[3] = a[2].logprobs[0] = std::numeric_limits<float>::quiet_NaN();
  a[2].logprobs[1] = -std::numeric_limits<float>::infinity();
  b[4].logprobs[7] -= 1;
  Comparison c = compared(a, b);
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("A holds 3 values that are no log-probabilities (2 NaN or null, "
                                   "1 infinite), first in row \"r0\", token 6"));
  EXPECT_EQ(c.bad_a, 3);
  EXPECT_EQ(c.bad_b, 0);
  EXPECT_EQ(c.compared, 6 * kScored - 3);
  EXPECT_EQ(c.differing, 1);
  EXPECT_EQ(c.rows[2].bad, 2);
  EXPECT_EQ(c.rows[4].differing, 1);
  EXPECT_EQ(metric(c.metrics, "loss/generator_logprob_nan_frac"), 3.0 / 96);
  EXPECT_EQ(metric(c.metrics, "torch_equal"), 0.0);
  // On both sides at one place it is no agreement, and null is no number either.
  b = a;
  EXPECT_EQ(compared(a, b).code, Code::kBrokenData);
  const std::string nulls =
      "{\"id\":1,\"tokens\":[1,2,3],\"prompt_len\":1,\"logprobs\":[null,-1]}\n";
  const auto n = compared(nulls, nulls);
  ASSERT_TRUE(n);
  EXPECT_EQ(n->code, Code::kBrokenData);
}

TEST(CompareLogs, MaskedPlaceholdersAreLeftOutWhateverTheyHold) {
  auto a = sample();
  a[0].logprobs[0] = std::numeric_limits<float>::quiet_NaN();
  a[0].logprobs[1] = 5;
  std::fill(a[0].logprobs.begin() + 2, a[0].logprobs.begin() + 8, 0.0f);
  a[0].more = ",\"mask\":[0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1]";
  a[1].logprobs[3] = -99;
  a[1].more = ",\"mask\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]";
  Comparison c = compared(a, sample());
  EXPECT_EQ(c.code, Code::kEqual) << c.finding;
  EXPECT_EQ(c.masked, 24);
  EXPECT_EQ(c.masked_rows, 1);
  EXPECT_EQ(c.compared, 72);
  EXPECT_EQ(c.sequences, 5);
  EXPECT_THAT(c.notes,
              Contains(HasSubstr("24 scored tokens are masked and left out; of 1 row all")));
  auto b = sample();
  b[0].more = ",\"mask\":[1,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1]";
  EXPECT_EQ(compared(a, b).code, Code::kNotComparable);
}

TEST(CompareLogs, RowsThatAreMissingTokensThatDifferAndDuplicatesAreDistinct) {
  auto b = sample();
  b.erase(b.begin() + 2);
  EXPECT_EQ(compared(sample(), b).finding, "one row is only in A: \"r2\"");
  EXPECT_EQ(compared(sample(), b).code, Code::kNotComparable);
  b = sample();
  b[1].tokens[7] += 1;
  Comparison c = compared(sample(), b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding,
              HasSubstr("the token ids of one row differ: \"r1\"; there first at token 7"));
  b = sample();
  b[1].tokens.push_back(9);
  b[1].logprobs.push_back(-1);
  EXPECT_THAT(compared(sample(), b).finding, HasSubstr("first at token 19: A none, B 9"));
  // Two ranks wrote one row: with the same contents, and with others.
  b = sample();
  b.push_back(b[0]);
  auto refused = compared(text(sample()), text(b));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBrokenData);
  EXPECT_THAT(refused.error().text(), HasSubstr("in line 1, with the same contents"));
  b.back().logprobs[3] -= 1;
  refused = compared(text(sample()), text(b));
  EXPECT_THAT(refused.error().text(), HasSubstr("the same tokens and other log-probabilities"));
  b.back().tokens[0] += 1;
  EXPECT_THAT(compared(text(sample()), text(b)).error().text(), HasSubstr("with other tokens"));
}

TEST(CompareLogs, NothingAndLengthsThatDisagreeAreBrokenData) {
  const auto code = [](const std::string& a) {
    const auto c = compared(a, text(sample()));
    return c ? c->code : c.error().code;
  };
  EXPECT_EQ(code(""), Code::kBrokenData);
  EXPECT_EQ(code("\n\n"), Code::kBrokenData);
  EXPECT_EQ(code("{\"id\":\"r0\",\"tokens\":[1,2],\"prompt_len\":1}\n"), Code::kBrokenData);
  EXPECT_EQ(code("{\"id\":\"r0\",\"tokens\":[1,2,3],\"prompt_len\":1,\"logprobs\":[-1]}\n"),
            Code::kBrokenData);
  auto others = sample();
  for (Row& r : others) r.id += "'";
  EXPECT_EQ(code(text(others)), Code::kBrokenData);  // nothing compared outranks missing rows
}

TEST(CompareLogs, WhatALogDidToItsNumbersIsSaid) {
  const auto bf16 =
      changed(sample(), [](float x) { return bits_float(float_bits(x) & 0xffff0000u); });
  Comparison c = compared(bf16, sample());
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_THAT(c.signatures, Contains("bf16-log"));
  EXPECT_THAT(c.notes, Contains(HasSubstr("every value of A is a bf16 number")));
  const auto cut = changed(sample(), [](float x) { return std::round(x * 1e4f) / 1e4f; });
  c = compared(sample(), cut);
  EXPECT_THAT(c.signatures, Contains("rounded-log"));
  EXPECT_THAT(c.notes, Contains(HasSubstr("no value of B has more than 5 digits")));
}

TEST(CompareLogs, ARolloutsHeaderIsCheckedAgainstScores) {
  const ScoreFile scores = scores_of(sample());
  const auto rollout = [&](const RunHeader& h) {
    return "{\"samebits\":\"rollout/1\"," +
           score_header_line(h).substr(sizeof("{\"samebits\":\"score/1\",") - 1) + text(sample());
  };
  const auto code = [&](const RunHeader& h) {
    const auto c = compared(rollout(h), score_text(scores));
    EXPECT_TRUE(c) << c.error().text();
    return c ? c->code : Code::kUsage;
  };
  RunHeader h = scores.header;
  h.schedule = "decode";
  EXPECT_EQ(code(h), Code::kEqual);
  h.weights = "w2";
  EXPECT_EQ(code(h), Code::kWeightsDiffer);
  h = scores.header;
  h.temperature = 0.7f;
  EXPECT_EQ(code(h), Code::kSemanticsDiffer);
  h = scores.header;
  h.profile = "ieee";
  EXPECT_EQ(code(h), Code::kNotComparable);
  auto rows = sample();
  rows[1].more = ",\"temperature\":0.5";
  const std::string head = rollout(scores.header);
  const auto c = compared(head.substr(0, head.find('\n') + 1) + text(rows), score_text(scores));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::kBrokenData);
  EXPECT_THAT(c.error().text(), HasSubstr("the row's temperature is 0.5, the header's 1"));
}

TEST(CompareLogs, OfSeveralFindingsTheOrderOfCodesDecides) {
  ScoreFile a = scores_of(sample()), b = a;
  b.rows[0].logprobs[0] -= 0.5f;
  EXPECT_EQ(compare_scores(a, b).code, Code::kDrift);
  b.header.temperature = 2;
  EXPECT_EQ(compare_scores(a, b).code, Code::kSemanticsDiffer);
  b.header.weights = "w2";
  EXPECT_EQ(compare_scores(a, b).code, Code::kWeightsDiffer);
  b.rows.pop_back();
  EXPECT_EQ(compare_scores(a, b).code, Code::kNotComparable);
  for (int i = 4; i < 9; ++i) b.rows[1].logprobs[static_cast<size_t>(i)] = 0;
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kBrokenData);
  // All of them are told, in the order of triage.
  ASSERT_GE(c.notes.size(), 4u);
  EXPECT_THAT(c.notes[0], HasSubstr("also not comparable: one row is only in A"));
  EXPECT_THAT(c.notes[1], HasSubstr("also weights differ"));
  EXPECT_THAT(c.notes[2], HasSubstr("also semantics differ"));
  EXPECT_THAT(c.notes[3], HasSubstr("also numeric drift"));
}

}  // namespace
}  // namespace sb
