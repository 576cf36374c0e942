// Comparing score files: equal bits, drift and where it begins, and every reason not to compare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "samebits/base/bits.h"
#include "samebits/gate/compare.h"

namespace sb {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

RunHeader header() {
  return {.model = "m1",
          .weights = "w1",
          .contracts = "gemma4.strict.v1:00ff",
          .profile = "sm90",
          .temperature = 1,
          .suppress = {},
          .schedule = "train"};
}

// Three rows of 8 log-probabilities, all different.
ScoreFile sample() {
  ScoreFile f{.header = header(), .rows = {}};
  for (int r = 0; r < 3; ++r) {
    ScoreRow row{"r" + std::to_string(r), token_digest(std::vector<int32_t>{r, 1, 2}), 4, {}};
    for (int i = 0; i < 8; ++i) {
      row.logprobs.push_back(-0.5f - static_cast<float>((r * 8 + i) * 7 % 24));
    }
    f.rows.push_back(row);
  }
  return f;
}

TEST(Worst, FollowsTheDeclaredOrder) {
  EXPECT_EQ(worst(Code::kEqual, Code::kDrift), Code::kDrift);
  EXPECT_EQ(worst(Code::kDrift, Code::kEnvironment), Code::kEnvironment);
  EXPECT_EQ(worst(Code::kEnvironment, Code::kRefused), Code::kRefused);
  EXPECT_EQ(worst(Code::kRefused, Code::kSemanticsDiffer), Code::kSemanticsDiffer);
  EXPECT_EQ(worst(Code::kSemanticsDiffer, Code::kWeightsDiffer), Code::kWeightsDiffer);
  EXPECT_EQ(worst(Code::kWeightsDiffer, Code::kNotComparable), Code::kNotComparable);
  EXPECT_EQ(worst(Code::kNotComparable, Code::kBrokenData), Code::kBrokenData);
  EXPECT_EQ(worst(Code::kBrokenData, Code::kUsage), Code::kUsage);
  EXPECT_EQ(worst(Code::kUsage, Code::kInterrupted), Code::kInterrupted);
}

TEST(CompareScores, EqualWhateverScheduleAndFileOrder) {
  ScoreFile a = sample(), b = sample();
  b.header.schedule = "decode";
  std::swap(b.rows[0], b.rows[2]);
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kEqual) << c.finding;
  EXPECT_EQ(c.finding, "all 24 log-probabilities of 3 rows have equal bits");
  EXPECT_EQ(c.compared, 24);
  EXPECT_FALSE(c.first);
  EXPECT_EQ(metric(c.metrics, "torch_equal"), 1.0);
}

TEST(CompareScores, FirstIsNotLargest) {
  ScoreFile a = sample(), b = sample();
  b.rows[1].logprobs[2] = bits_float(float_bits(b.rows[1].logprobs[2]) + 3);
  b.rows[2].logprobs[0] -= 2;
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kDrift);
  ASSERT_TRUE(c.first && c.largest);
  EXPECT_EQ(c.first->id, "r1");
  EXPECT_EQ(c.first->pos, 6);  // prompt_len 4 + 2
  EXPECT_EQ(c.first->ulp, 3);
  EXPECT_EQ(c.first->bits_b, c.first->bits_a + 3);
  EXPECT_EQ(c.largest->id, "r2");
  EXPECT_EQ(c.differing, 2);
  EXPECT_THAT(c.finding,
              HasSubstr("2 of 24 log-probabilities differ, first in row \"r1\" at token 6"));
  EXPECT_THAT(c.hint, HasSubstr("--trace"));
}

TEST(CompareScores, SignOfZeroIsADifference) {
  ScoreFile a = sample(), b = sample();
  a.rows[0].logprobs[0] = 0.0f;
  b.rows[0].logprobs[0] = -0.0f;
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_EQ(c.first->ulp, 1);
}

TEST(CompareScores, DifferentRowsAreNotComparable) {
  ScoreFile a = sample(), b = sample();
  b.rows.pop_back();
  Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_EQ(c.finding, "one row is only in A: \"r2\"");
  c = compare_scores(b, a);
  EXPECT_EQ(c.finding, "one row is only in B: \"r2\"");
  b = sample();
  b.rows[1].tokens = "0000000000000000";
  EXPECT_THAT(compare_scores(a, b).finding, HasSubstr("token ids of one row differ: \"r1\""));
  b = sample();
  b.rows[1].prompt_len = 5;
  EXPECT_EQ(compare_scores(a, b).code, Code::kNotComparable);
  b = sample();
  b.rows[1].logprobs.pop_back();
  EXPECT_EQ(compare_scores(a, b).code, Code::kNotComparable);
}

TEST(CompareScores, NothingComparedIsBrokenData) {
  ScoreFile a = sample(), b = sample();
  for (auto& row : b.rows) row.id += "x";
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_EQ(c.finding, "nothing was compared");
  EXPECT_THAT(c.notes, Contains(HasSubstr("3 rows are only in A, first \"r0\"")));
}

TEST(CompareScores, HeadersAreTriagedBeforeNumbers) {
  ScoreFile a = sample(), b = sample();
  b.rows[0].logprobs[0] -= 1;
  b.header.model = "m2";
  Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_THAT(c.finding, HasSubstr("model configurations differ: A m1, B m2"));
  EXPECT_THAT(c.notes, Contains(HasSubstr("also numeric drift")));
  b.header.temperature = 0.7f;
  c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_EQ(c.finding, "the temperatures differ: A 1, B 0.7");
  b.header.weights = "w2";
  c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kWeightsDiffer);
  EXPECT_EQ(c.finding, "the weights differ: A w1, B w2");
  b.header.contracts = "gemma4.strict.v1:0100";
  c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding, HasSubstr("the contracts differ"));
}

TEST(CompareScores, EqualBitsDoNotExcuseDifferentWeights) {
  ScoreFile a = sample(), b = sample();
  b.header.weights = "w2";
  EXPECT_EQ(compare_scores(a, b).code, Code::kWeightsDiffer);
  b = sample();
  b.header.suppress = {5};
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_EQ(c.finding, "the suppressed ids differ: A [], B [5]");
}

TEST(CompareScores, ProfilesNeedTheirComparatorAndAreNeverEqual) {
  ScoreFile a = sample(), b = sample();
  b.header.profile = "gfx942";
  Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding, HasSubstr("the profiles differ: A sm90, B gfx942"));
  CompareOptions options;
  options.comparator = "cross-profile.v1";
  c = compare_scores(a, b, options);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding,
              HasSubstr("no bits differ, but profiles sm90 and gfx942 are never called equal"));
  b.rows[0].logprobs[0] -= 0.25f;
  c = compare_scores(a, b, options);
  EXPECT_EQ(c.code, Code::kDrift);
  EXPECT_THAT(c.finding, HasSubstr("profiles sm90 and gfx942 measured: 1 of 24"));
  EXPECT_THAT(c.hint, HasSubstr("differences are expected"));
  EXPECT_EQ(c.comparator, "cross-profile.v1");
  EXPECT_EQ(c.differing, 1);
  EXPECT_EQ(metric(c.metrics, "train/train_rollout_logprob_max_abs_diff"), 0.25);
  // Contracts know no profile: other digests are other arithmetic, whatever the comparator.
  b.header.contracts = "gemma4.strict.v1:0100";
  c = compare_scores(a, b, options);
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding, HasSubstr("the contracts differ"));
}

TEST(CompareScores, TheCrossProfileComparatorDoesNotExcuseWhatElseDiffers) {
  ScoreFile a = sample(), b = sample();
  b.header.profile = "ieee";
  b.rows[0].logprobs[0] -= 0.25f;
  CompareOptions options;
  options.comparator = "cross-profile.v1";
  b.header.temperature = 0.5f;
  EXPECT_EQ(compare_scores(a, b, options).code, Code::kSemanticsDiffer);
  b.header.weights = "w2";
  EXPECT_EQ(compare_scores(a, b, options).code, Code::kWeightsDiffer);
  b.rows.pop_back();
  EXPECT_EQ(compare_scores(a, b, options).code, Code::kNotComparable);
  // Of one profile it is the comparison of bits, and may find them equal.
  const Comparison same = compare_scores(a, a, options);
  EXPECT_EQ(same.code, Code::kEqual);
  EXPECT_EQ(same.comparator, "bits.v1");
}

TEST(CompareScores, UnknownComparatorIsUsage) {
  CompareOptions options;
  options.comparator = "allclose";
  EXPECT_EQ(compare_scores(sample(), sample(), options).code, Code::kUsage);
}

TEST(CompareScores, FillerZerosAreBrokenData) {
  ScoreFile a = sample(), b = sample();
  for (int i = 2; i < 6; ++i) a.rows[1].logprobs[static_cast<size_t>(i)] = 0;
  const Comparison c = compare_scores(a, b);
  EXPECT_EQ(c.code, Code::kBrokenData);
  EXPECT_THAT(c.finding, HasSubstr("A holds runs of exact 0.0"));
  EXPECT_THAT(c.finding, HasSubstr("\"r1\""));
}

TEST(CompareScores, ShiftedStreamsAreNamed) {
  for (const int lag : {1, -1}) {
    ScoreFile a = sample(), b = sample();
    for (auto& row : b.rows) {
      auto& x = row.logprobs;
      if (lag > 0) std::rotate(x.begin(), x.begin() + 1, x.end());
      if (lag < 0) std::rotate(x.begin(), x.end() - 1, x.end());
    }
    const Comparison c = compare_scores(a, b);
    EXPECT_EQ(c.code, Code::kSemanticsDiffer);
    EXPECT_THAT(c.finding, HasSubstr("shifted by one"));
    EXPECT_THAT(c.signatures, ElementsAre("shift"));
    EXPECT_THAT(c.finding, HasSubstr(lag > 0 ? "B[i] holds what A[i+1] holds" : "A[i−1] holds"));
  }
}

TEST(CompareScores, MetricsKnowTheTrainingSide) {
  ScoreFile a = sample(), b = sample();
  b.rows[0].logprobs[0] -= 1;
  b.header.schedule = "decode";
  Comparison c = compare_scores(a, b);  // A says train
  EXPECT_TRUE(c.a_is_train);
  EXPECT_LT(metric(c.metrics, "kl"), 0);
  c = compare_scores(b, a);
  EXPECT_FALSE(c.a_is_train);
  EXPECT_LT(metric(c.metrics, "kl"), 0);
}

std::vector<TokenRow> log_rows() {
  std::vector<TokenRow> rows;
  for (const ScoreRow& r : sample().rows) {
    TokenRow row;
    row.id = r.id;
    row.tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    row.prompt_len = 4;
    row.logprobs = r.logprobs;
    rows.push_back(row);
  }
  return rows;
}

ScoreSide log_side(std::vector<TokenRow> rows, const std::string& name) {
  return score_side(TokenLog{.header = {}, .rows = std::move(rows)}, name);
}

ScoreFile scores_of(const std::vector<TokenRow>& rows) {
  ScoreFile f{.header = header(), .rows = {}};
  for (const auto& r : rows) {
    f.rows.push_back({r.id, token_digest(r.tokens), r.prompt_len, *r.logprobs});
  }
  return f;
}

TEST(CompareScores, ExternalLogsSayWhatIsUnchecked) {
  const Comparison c =
      compare_scores(log_side(log_rows(), "log"), score_side(scores_of(log_rows()), "scores"));
  EXPECT_EQ(c.code, Code::kEqual) << c.finding;
  EXPECT_THAT(c.notes, Contains(HasSubstr("A is an external log")));
  EXPECT_THAT(c.notes, Contains(HasSubstr("temperature")));
}

TEST(CompareScores, ExternalLogsTemperatureAndTokens) {
  auto rows = log_rows();
  for (auto& row : rows) row.temperature = 0.6f;
  const ScoreFile scores = scores_of(log_rows());
  Comparison c = compare_scores(log_side(rows, "log"), score_side(scores, "scores"));
  EXPECT_EQ(c.code, Code::kSemanticsDiffer);
  EXPECT_EQ(c.finding, "the temperatures differ: A 0.6, B 1; 3 rows, first \"r0\"");
  rows = log_rows();
  rows[2].tokens[0] = 0;
  c = compare_scores(log_side(rows, "log"), score_side(scores, "scores"));
  EXPECT_EQ(c.code, Code::kNotComparable);
  EXPECT_THAT(c.finding, HasSubstr("\"r2\""));
}

TEST(CompareScores, MaskedTokensAreLeftOutAndCounted) {
  auto rows = log_rows();
  rows[0].logprobs->at(3) = -50;  // a placeholder
  rows[0].mask = std::vector<uint8_t>{1, 1, 1, 0, 1, 1, 1, 1};
  const ScoreFile scores = scores_of(log_rows());
  Comparison c = compare_scores(log_side(rows, "log"), score_side(scores, "scores"));
  EXPECT_EQ(c.code, Code::kEqual) << c.finding;
  EXPECT_EQ(c.compared, 23);
  EXPECT_EQ(c.masked, 1);
  EXPECT_THAT(c.notes, Contains(HasSubstr("1 scored token is masked")));
  for (auto& row : rows) row.mask = std::vector<uint8_t>(8, 0);
  c = compare_scores(log_side(rows, "log"), score_side(scores, "scores"));
  EXPECT_EQ(c.code, Code::kBrokenData);
  auto others = log_rows();
  others[0].mask = std::vector<uint8_t>(8, 1);
  EXPECT_EQ(compare_scores(log_side(rows, "a"), log_side(others, "b")).code, Code::kBrokenData);
}

TEST(CompareFiles, RecogniseContentAndRefuseTheRest) {
  const std::string dir = testing::TempDir() + "/" + std::to_string(getpid()) + "_";
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(dir + name, std::ios::binary) << text;
    return dir + name;
  };
  std::string scores = score_header_line(header());
  for (const auto& row : scores_of(log_rows()).rows) scores += score_row_line(row);
  std::string log;
  for (const auto& r : log_rows()) {
    log += "{\"id\":\"" + r.id +
           "\",\"tokens\":[1,2,3,4,5,6,7,8,9,10,11,12],\"prompt_len\":4,\"lp\":[";
    for (size_t i = 0; i < 8; ++i) (log += i ? "," : "") += std::to_string(r.logprobs->at(i));
    log += "]}\n";
  }
  const std::string s = put("s.txt", scores), l = put("l.txt", log);
  CompareOptions options;
  ASSERT_TRUE(add_key_rename("logprobs=lp", options.token_rows));
  const auto same = compare_files(l, s, options);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(same->code, Code::kEqual) << same->finding;
  EXPECT_EQ(same->name_a, l);
  const auto code = [&](const std::string& a, const std::string& b) {
    const auto c = compare_files(a, b, {});
    return c ? c->code : c.error().code;
  };
  EXPECT_EQ(code(s, l), Code::kBrokenData);  // no "logprobs" there
  EXPECT_EQ(code(s, put("e.txt", "")), Code::kBrokenData);
  EXPECT_EQ(code(s, put("x.txt", "hello")), Code::kBrokenData);
  EXPECT_EQ(code(s, put("t.sbt", "samebits trace/1\n")), Code::kBrokenData);
  EXPECT_EQ(code(s, dir + "none"), Code::kUsage);
  EXPECT_EQ(code("-", "-"), Code::kUsage);
  EXPECT_EQ(code(s, put("cut.txt", scores.substr(0, scores.size() - 1))), Code::kBrokenData);
  const std::string less = scores.substr(0, scores.rfind("{\"id\""));
  EXPECT_EQ(code(s, put("less.txt", less)), Code::kNotComparable);
}

}  // namespace
}  // namespace sb
