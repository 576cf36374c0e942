#include "samebits/gate/token_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "samebits/base/bits.h"

namespace sb {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kVocab = 2500, kPositions = 64;

Result<std::vector<TokenRow>> parse(const std::string& text, const TokenRowOptions& options = {}) {
  return parse_token_rows(text, "t.jsonl", kVocab, kPositions, options);
}

// The first reason of a refusal; its code must be `code`.
std::string reason(const std::string& text, Code code = Code::kBrokenData,
                   const TokenRowOptions& options = {}) {
  const auto rows = parse(text, options);
  if (rows) return "(accepted)";
  EXPECT_EQ(rows.error().code, code) << rows.error().text();
  EXPECT_THAT(rows.error().asked, HasSubstr("t.jsonl"));
  return rows.error().reasons.at(0);
}

std::string row_with(const std::string& more) {
  return R"({"id":"r","tokens":[1,2,3,4],"prompt_len":2)" + more + "}\n";
}

TEST(TokenRows, ReadsAllKeysAndKeepsUnknownOnes) {
  const auto rows = parse(
      R"({"id":"a","tokens":[0,2499,7],"prompt_len":1,"logprobs":[-0.5,"0xbf800000"],"mask":[1,0],)"
      R"("temperature":0.7,"suppress":[9,3,9],"reward":1.50,"meta":{"k":[1]}})"
      "\n\n"
      R"({"id":7,"tokens":[1,2],"prompt_len":1})");
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 2u);
  const TokenRow& a = (*rows)[0];
  EXPECT_EQ(a.id, "a");
  EXPECT_THAT(a.tokens, ElementsAre(0, 2499, 7));
  EXPECT_EQ(a.prompt_len, 1);
  EXPECT_EQ(a.num_scored(), 2);
  EXPECT_EQ(float_bits(a.logprobs->at(0)), 0xbf000000u);
  EXPECT_EQ(float_bits(a.logprobs->at(1)), 0xbf800000u);
  EXPECT_THAT(*a.mask, ElementsAre(1, 0));
  EXPECT_EQ(float_bits(*a.temperature), float_bits(0.7f));
  EXPECT_THAT(*a.suppress, ElementsAre(3, 9));
  EXPECT_EQ(a.extra, R"({"reward":1.50,"meta":{"k":[1]}})");
  EXPECT_EQ((*rows)[1].id, "7");
  EXPECT_FALSE((*rows)[1].logprobs);
  EXPECT_EQ((*rows)[1].extra, "");
}

TEST(TokenRows, IdsOutOfRangeNameLineRowIndexValueAndLimit) {
  for (const char* id : {"-1", "2500", "4294967296", "5279552648203111001", "18446744073709551616",
                         "1.5", "\"7\"", "null", "true"}) {
    const std::string text = R"({"id":"ok","tokens":[1,2],"prompt_len":1})"
                             "\n"
                             R"({"id":"r7","tokens":[1,)" +
                             std::string(id) + R"(,2],"prompt_len":1})";
    EXPECT_EQ(reason(text), "line 2, row \"r7\": tokens[1] = " + std::string(id) +
                                " is not an id in 0…2499 (vocabulary 2500)");
  }
}

TEST(TokenRows, EmptyAndShortRows) {
  EXPECT_THAT(reason(R"({"id":"r","tokens":[],"prompt_len":1})"), HasSubstr("tokens holds 0 ids"));
  EXPECT_THAT(reason(R"({"id":"r","tokens":[5],"prompt_len":1})"), HasSubstr("needs at least 2"));
  EXPECT_THAT(reason(""), HasSubstr("it holds no rows"));
  EXPECT_THAT(reason("\n  \r\n"), HasSubstr("it holds no rows"));
}

TEST(TokenRows, PromptLenHasNoDefaultAndLeavesOneScoredToken) {
  EXPECT_THAT(reason(R"({"id":"r","tokens":[1,2]})"), HasSubstr("\"prompt_len\" is missing"));
  for (const char* n : {"0", "-1", "4", "5", "1.0", "\"1\"", "null"}) {
    const std::string text = R"({"id":"r","tokens":[1,2,3,4],"prompt_len":)" + std::string(n) + "}";
    EXPECT_THAT(reason(text), HasSubstr("prompt_len = " + std::string(n) + " is not in 1…3"));
  }
}

TEST(TokenRows, RowsLongerThanTheModelAreRefused) {
  std::string tokens = "1";
  for (int i = 0; i < kPositions; ++i) tokens += ",1";
  const std::string text = R"({"id":"r","tokens":[)" + tokens + R"(],"prompt_len":1})";
  EXPECT_THAT(reason(text, Code::kRefused), HasSubstr("holds 65 ids, more than the model's 64"));
}

TEST(TokenRows, DuplicateIdsNameBothLines) {
  const std::string row = R"({"id":"r","tokens":[1,2],"prompt_len":1})";
  EXPECT_EQ(reason(row + "\n\n" + row),
            "line 3, row \"r\": the id appeared before, in line 1, with the same contents");
}

TEST(TokenRows, MissingOrWrongIds) {
  EXPECT_THAT(reason(R"({"tokens":[1,2],"prompt_len":1})"), HasSubstr("line 1: the key \"id\""));
  EXPECT_THAT(reason(R"({"id":"","tokens":[1,2],"prompt_len":1})"), HasSubstr("id is empty"));
  EXPECT_THAT(reason(R"({"id":1.5,"tokens":[1,2],"prompt_len":1})"),
              HasSubstr("id = 1.5 is neither"));
}

TEST(TokenRows, LogprobsMustBeOnePerScoredToken) {
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[-1])")),
              HasSubstr("logprobs holds 1 values; 4 tokens − prompt_len 2 = 2 are expected"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[-1,-1,-1,-1])")), HasSubstr("holds 4 values"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":"x")")), HasSubstr("logprobs = \"x\", not an array"));
}

TEST(TokenRows, LogprobsMustBeFiniteAndNotPositive) {
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[-1,0.5])")),
              HasSubstr("logprobs[1] = 0.5 is positive"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[-1,"0x7fc00000"])")),
              HasSubstr("logprobs[1] = \"0x7fc00000\" is not finite"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":["0xff800000",-1])")), HasSubstr("is not finite"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":["0x7f800000",-1])")), HasSubstr("is not finite"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[-1e39,-1])")), HasSubstr("is not a finite number"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[null,null])")),
              HasSubstr("logprobs[0] = null is not a finite number; 2 of 2 values"));
  EXPECT_THAT(reason(row_with(R"(,"logprobs":[NaN,-1])")),
              HasSubstr("NaN and Infinity are not JSON"));
}

TEST(TokenRows, LogprobsUnderAnotherName) {
  TokenRowOptions options;
  ASSERT_TRUE(add_key_rename("logprobs=rollout_log_probs", options));
  options.need_logprobs = true;
  const auto rows = parse(row_with(R"(,"rollout_log_probs":[-1,-2],"logprobs":"mine")"), options);
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_THAT(*(*rows)[0].logprobs, ElementsAre(-1.0f, -2.0f));
  EXPECT_EQ((*rows)[0].extra, R"({"logprobs":"mine"})");
  EXPECT_THAT(reason(row_with(""), Code::kBrokenData, options),
              HasSubstr("the key \"rollout_log_probs\" is missing"));
}

TEST(TokenRows, RenamesOfUnknownKeysAreUsageErrors) {
  TokenRowOptions options;
  for (const char* text : {"logprob=x", "logprobs", "logprobs=", "=x", ""}) {
    const auto status = add_key_rename(text, options);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, Code::kUsage);
  }
}

TEST(TokenRows, MasksTemperatureAndSuppress) {
  const auto rows = parse(row_with(R"(,"mask":[0,0,1,false])"));
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_THAT(*(*rows)[0].mask, ElementsAre(1, 0));  // the scored tail of a mask over all tokens
  EXPECT_THAT(reason(row_with(R"(,"mask":[1])")),
              HasSubstr("per scored token (2) or per token (4)"));
  EXPECT_THAT(reason(row_with(R"(,"mask":[1,2])")), HasSubstr("mask[1] = 2 is not 0 or 1"));
  EXPECT_THAT(reason(row_with(R"(,"temperature":0)")),
              HasSubstr("temperature = 0 is not a finite"));
  EXPECT_THAT(reason(row_with(R"(,"temperature":-1)")), HasSubstr("temperature = -1"));
  EXPECT_THAT(reason(row_with(R"(,"suppress":[2500])")),
              HasSubstr("suppress[0] = 2500 is not an id"));
  EXPECT_THAT(reason(row_with(R"(,"suppress":[4])")),
              HasSubstr("tokens[3] = 4 is scored and in suppress"));
  EXPECT_TRUE(parse(row_with(R"(,"suppress":[1,2])")));  // prompt tokens may be suppressed ids
}

TEST(TokenRows, MalformedTextNamesLineAndColumn) {
  EXPECT_THAT(reason("{\"id\":"), HasSubstr("line 1: not JSON at column 7"));
  EXPECT_THAT(reason("[1]"), HasSubstr("line 1: not a JSON object"));
  EXPECT_THAT(reason("{\"id\":\"\xff\",\"tokens\":[1,2],\"prompt_len\":1}"), HasSubstr("UTF-8"));
  EXPECT_THAT(reason(R"({"id":"a","id":"b","tokens":[1,2],"prompt_len":1})"),
              HasSubstr("the key \"id\" appears twice"));
}

TEST(TokenRows, ReadsFilesAndRefusesMissingOnes) {
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_rows.jsonl";
  std::ofstream(path) << R"({"id":"r","tokens":[1,2],"prompt_len":1})" << "\r\n";
  const auto rows = read_token_rows(path, kVocab, kPositions);
  ASSERT_TRUE(rows) << rows.error().text();
  EXPECT_EQ(rows->size(), 1u);
  const auto missing = read_token_rows(path + ".none", kVocab, kPositions);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUsage);
}

}  // namespace
}  // namespace sb
