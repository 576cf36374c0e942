#include "samebits/gate/score_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"

namespace sb {
namespace {

using testing::HasSubstr;

RunHeader header() {
  return {.model = "m1",
          .weights = "w1",
          .contracts = "gemma4.strict.v1:00ff",
          .profile = "sm90",
          .temperature = 0.7f,
          .suppress = {3, 9},
          .schedule = "chunked:16"};
}

TokenRow token_row(const std::string& id) {
  TokenRow row;
  row.id = id;
  row.tokens = {5, 6, 7, 8};
  row.prompt_len = 2;
  return row;
}

std::string sample() {
  return score_header_line(header()) +
         score_row_line({"a", token_digest(std::vector<int32_t>{5, 6, 7}), 1, {-1.25f, -0.0f}}) +
         score_row_line({"ü\"", token_digest(std::vector<int32_t>{1, 2}), 1, {-1e-6f}});
}

std::string reason(const std::string& text) {
  const auto file = parse_score_file(text, "s.jsonl");
  if (file) return "(accepted)";
  EXPECT_EQ(file.error().code, Code::kBrokenData);
  EXPECT_THAT(file.error().asked, HasSubstr("s.jsonl"));
  return file.error().reasons.at(0);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ScoreFile, BytesAreExactlyTheDeclaredOnes) {
  EXPECT_EQ(
      score_header_line(header()),
      R"({"samebits":"score/1","model":"m1","weights":"w1","contracts":"gemma4.strict.v1:00ff",)"
      R"("profile":"sm90","temperature":0.7,"suppress":[3,9],"schedule":"chunked:16"})"
      "\n");
  EXPECT_EQ(score_row_line({"a", "00000000000000ff", 1, {-1.25f, -1e-6f, 0.0f}}),
            R"({"id":"a","tokens":"00000000000000ff","prompt_len":1,"logprobs":[-1.25,-1e-06,0]})"
            "\n");
}

TEST(ScoreFile, TokenDigestIsTheRowDigest) {
  EXPECT_EQ(token_digest(std::vector<int32_t>{7, 9}),
            hex64(digest_element(7, 0) + digest_element(9, 1)));
  EXPECT_NE(token_digest(std::vector<int32_t>{9, 7}), token_digest(std::vector<int32_t>{7, 9}));
}

TEST(ScoreFile, WriterAndReaderAgree) {
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_scores.jsonl";
  unlink(path.c_str());
  {
    auto writer = ScoreWriter::create(path, false, header());
    ASSERT_TRUE(writer) << writer.error().text();
    const std::vector<float> logprobs = {-0.0f, bits_float(0x80000001u)};
    ASSERT_TRUE(writer->add(token_row("r1"), logprobs));
    ASSERT_TRUE(writer->add(token_row("r2"), std::vector<float>{-3.4e38f, -0.1f}));
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "nothing appears before commit";
    ASSERT_TRUE(writer->commit());
  }
  const auto file = read_score_file(path);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->header.temperature, 0.7f);
  EXPECT_EQ(file->header.suppress, (std::vector<int32_t>{3, 9}));
  EXPECT_EQ(file->header.schedule, "chunked:16");
  ASSERT_EQ(file->rows.size(), 2u);
  EXPECT_EQ(float_bits(file->rows[0].logprobs[0]), 0x80000000u);
  EXPECT_EQ(float_bits(file->rows[0].logprobs[1]), 0x80000001u);
  EXPECT_EQ(file->rows[1].tokens, token_digest(token_row("r2").tokens));
}

TEST(ScoreFile, WriterRefusesWhatIsNoScore) {
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_refused.jsonl";
  auto writer = ScoreWriter::create(path, true, header());
  ASSERT_TRUE(writer);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto bad = writer->add(token_row("r1"), std::vector<float>{-1, nan});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kBrokenData);
  EXPECT_THAT(bad.error().reasons[0], HasSubstr("row \"r1\": the log-probability of token 3"));
  EXPECT_FALSE(writer->add(token_row("r1"), std::vector<float>{-1, 0.5f}));
  EXPECT_FALSE(writer->commit());  // no rows
}

TEST(ScoreFile, WriterKeepsExistingFiles) {
  const std::string path = testing::TempDir() + "/" + std::to_string(getpid()) + "_kept.jsonl";
  unlink(path.c_str());
  auto first = ScoreWriter::create(path, false, header());
  ASSERT_TRUE(first && first->add(token_row("r"), std::vector<float>{-1, -1}) && first->commit());
  const auto second = ScoreWriter::create(path, false, header());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kUsage);
}

TEST(ScoreFile, ReaderNamesLineAndFault) {
  ASSERT_EQ(reason(sample()), "(accepted)");
  EXPECT_THAT(reason(""), HasSubstr("empty"));
  EXPECT_THAT(reason(score_header_line(header())), HasSubstr("a header and no rows"));
  EXPECT_THAT(reason(replaced(sample(), "score/1", "score/2")),
              HasSubstr("line 1: unknown version \"score/2\""));
  EXPECT_THAT(reason(replaced(sample(), R"("model":"m1",)", "")),
              HasSubstr("line 1: the key \"model\" is missing"));
  EXPECT_THAT(reason(replaced(sample(), R"("model":"m1","weights":"w1")",
                              R"("weights":"w1","model":"m1")")),
              HasSubstr("key order"));
  EXPECT_THAT(reason(replaced(sample(), R"("profile":"sm90")", R"("profile":"")")),
              HasSubstr("profile = \"\" is not a non-empty string"));
  EXPECT_THAT(reason(replaced(sample(), "0.7", "0")), HasSubstr("temperature = 0"));
  EXPECT_THAT(reason(replaced(sample(), "[3,9]", "[9,3]")), HasSubstr("ascending"));
  EXPECT_THAT(reason(replaced(sample(), R"(,"prompt_len":1)", "")),
              HasSubstr("line 2: the key \"prompt_len\" is missing"));
  EXPECT_THAT(reason(replaced(sample(), "-1.25", "1.25")),
              HasSubstr("line 2, row \"a\": logprobs[0] = 1.25 is positive"));
  EXPECT_THAT(reason(replaced(sample(), "-1.25", "-1e39")), HasSubstr("is not a finite number"));
  EXPECT_THAT(reason(replaced(sample(), "-1.25", "null")), HasSubstr("is not a finite number"));
  EXPECT_THAT(reason(replaced(sample(), "[-1.25,-0.0]", "[]")), HasSubstr("at least one number"));
  EXPECT_THAT(reason(replaced(sample(), R"("id":"a")", R"("id":"ü\"")")),
              HasSubstr("line 3, row \"ü\\\"\": the id appeared before, in line 2"));
  EXPECT_THAT(reason(replaced(sample(), R"("prompt_len":1)", R"("prompt_len":0)")),
              HasSubstr("prompt_len = 0"));
  EXPECT_THAT(reason(replaced(sample(), R"("id":"a",)", R"("id":"a","x":1,)")),
              HasSubstr("unexpected key"));
}

TEST(ScoreFile, EveryTruncationIsRefusedExceptBetweenRows) {
  const std::string text = sample();
  const size_t second_row = text.find("{\"id\":\"ü");
  for (size_t n = 0; n < text.size(); ++n) {
    const auto file = parse_score_file(std::string_view(text).substr(0, n), "cut");
    if (n == second_row) {
      // A shorter valid file: comparison finds the missing row.
      ASSERT_TRUE(file);
      EXPECT_EQ(file->rows.size(), 1u);
    } else {
      ASSERT_FALSE(file) << n;
      EXPECT_EQ(file.error().code, Code::kBrokenData);
    }
  }
}

TEST(ScoreFile, FlippedBitsNeverCrash) {
  const std::string text = sample();
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      (void)parse_score_file(flipped, "flipped");
    }
  }
}

}  // namespace
}  // namespace sb
