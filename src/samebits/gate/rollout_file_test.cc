// Rollout files: a line that rollout writes is a token row that score and compare read back without
// losing a bit; prompts are rows whose results are ignored.
#include "samebits/gate/rollout_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/gate/token_rows.h"

namespace sb {
namespace {

using testing::HasSubstr;

Result<std::vector<Sequence>> prompts(const std::string& text, int64_t max_position = 100) {
  const std::string path = testing::TempDir() + "prompts." + std::to_string(getpid()) + ".jsonl";
  std::ofstream(path, std::ios::binary) << text;
  auto read = read_prompts(path, 50, max_position);
  unlink(path.c_str());
  return read;
}

Code code_of(const std::string& text, int64_t max_position = 100) {
  const auto read = prompts(text, max_position);
  EXPECT_FALSE(read) << text;
  return read ? Code::kEqual : read.error().code;
}

TEST(RolloutFile, ALineReadsBackAsTheSameBits) {
  const Sequence s{"a \"quoted\" ünit\n", {1, 2, 3, 4, 5, 6, 7}, 2};
  const std::vector<float> logprobs = {-0.1f, -1e-38f, -1e-45f, -0.0f, -123456.789f};
  const std::string line = rollout_line(s, logprobs, 0.7f, {8, 9});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.back(), '\n');
  TokenRowOptions options;
  options.need_logprobs = true;
  const auto rows = parse_token_rows(line, "here", kAnyVocab, kAnyPosition, options);
  ASSERT_TRUE(rows) << rows.error().text();
  const TokenRow& r = rows->front();
  EXPECT_EQ(r.id, s.id);
  EXPECT_EQ(r.tokens, s.tokens);
  EXPECT_EQ(r.prompt_len, 2);
  EXPECT_EQ(r.suppress, (std::vector<int32_t>{8, 9}));
  ASSERT_TRUE(r.temperature);
  EXPECT_EQ(float_bits(*r.temperature), float_bits(0.7f));
  ASSERT_EQ(r.logprobs->size(), logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) {
    EXPECT_EQ(float_bits((*r.logprobs)[i]), float_bits(logprobs[i])) << i;
  }
  EXPECT_EQ(r.extra, "");
}

TEST(RolloutFile, ALineIsJson) {
  const auto j = nlohmann::json::parse(rollout_line({"x", {4, 5}, 1}, std::vector{-1.5f}, 1, {}));
  EXPECT_EQ(j["tokens"], (std::vector<int>{4, 5}));
  EXPECT_EQ(j["logprobs"][0], -1.5);
  EXPECT_TRUE(j["suppress"].is_array() && j["suppress"].empty());
}

TEST(Prompts, WholeRowsAndRowsCutToTheirPrompt) {
  const auto p = prompts(
      "{\"id\":\"a\",\"tokens\":[1,2,3]}\n"
      "{\"id\":7,\"tokens\":[4,5,6],\"prompt_len\":2}\n"
      "{\"id\":\"one\",\"tokens\":[9]}\n");
  ASSERT_TRUE(p) << p.error().text();
  ASSERT_EQ(p->size(), 3u);
  EXPECT_EQ((*p)[0].tokens, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ((*p)[0].prompt_len, 3);
  EXPECT_EQ((*p)[1].tokens, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ((*p)[1].prompt_len, 2);
  EXPECT_EQ((*p)[2].tokens, (std::vector<int32_t>{9}));
}

TEST(Prompts, ARolloutIsAlsoAListOfPrompts) {
  const auto p = prompts(rollout_line({"a", {1, 2, 3}, 2}, std::vector{-1.0f}, 0.5f, {}));
  ASSERT_TRUE(p) << p.error().text();
  EXPECT_EQ(p->front().tokens, (std::vector<int32_t>{1, 2}));
}

TEST(Prompts, OtherKeysAreIgnored) {
  EXPECT_TRUE(prompts("{\"id\":\"a\",\"tokens\":[1],\"logprobs\":\"none\",\"text\":\"hi\"}\n"));
}

TEST(Prompts, WhatTokenRowsRefuse) {
  EXPECT_EQ(code_of(""), Code::kBrokenData);
  EXPECT_EQ(code_of("{\n"), Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[]}\n"), Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[50]}\n"), Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[-1]}\n"), Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[1]}\n{\"id\":\"a\",\"tokens\":[1]}\n"),
            Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[1,2],\"prompt_len\":3}\n"), Code::kBrokenData);
  EXPECT_EQ(code_of("{\"id\":\"a\",\"tokens\":[1,2,3,4]}\n", /*max_position=*/3), Code::kRefused);
}

TEST(Prompts, TheRefusalNamesFileAndLine) {
  const auto p = prompts("{\"id\":\"a\",\"tokens\":[1]}\n{\"id\":\"b\",\"tokens\":[\"x\"]}\n");
  ASSERT_FALSE(p);
  EXPECT_THAT(p.error().text(), HasSubstr("jsonl"));
  EXPECT_THAT(p.error().text(), HasSubstr("line 2"));
}

}  // namespace
}  // namespace sb
