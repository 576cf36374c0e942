// samebits audit as users run it: a rollout file and the log of another engine, on tiny and on
// mini.
#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::StartsWith;

// Rolls `rows` prompts out on a preset; returns the path.
std::string rolled(const std::string& preset, int rows, const std::string& flags = "") {
  std::string prompts;
  for (int i = 0; i < rows; ++i) {
    const Sequence s = row_of("r" + std::to_string(i), 4 + i % 7, 1);
    nlohmann::json j = {{"id", s.id}, {"tokens", s.tokens}};
    prompts += j.dump() + "\n";
  }
  const std::string out = scratch() + "/rollout." + preset + ".jsonl";
  const Outcome o = samebits("rollout " + shared_model(preset) + " --prompts " +
                             put("prompts.jsonl", prompts) + " --force --out " + out + " " + flags);
  EXPECT_EQ(o.code, 0) << o.err;
  return out;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream in(read_text(path).value());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// A row's line with the last bit of one log-probability flipped.
std::string flipped(const std::string& line, size_t token) {
  auto j = nlohmann::ordered_json::parse(line);
  const uint32_t bits = float_bits(j["logprobs"][token].get<float>()) ^ 1;
  j["logprobs"][token] = "0x" + hex64(bits).substr(8);
  return j.dump();
}

// Equal, then with one bit flipped in the third of four drawn rows of 64.
void expect_audited(const std::string& preset, const std::string& log) {
  const std::string line = "audit " + shared_model(preset) + " --sample 4 --seed 1 --log ";
  Outcome o = samebits(line + log);
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, StartsWith("EQUAL  all "));
  EXPECT_THAT(o.out, HasSubstr("4 of 64 rows, drawn by seed 1"));
  EXPECT_EQ(o.err, "");
  o = samebits("--json " + line + log);
  auto j = nlohmann::json::parse(o.out);
  ASSERT_EQ(j["drawn"].size(), 4u);
  EXPECT_EQ(j["comparison"]["compared"], j["compared"]);

  auto lines = lines_of(log);
  ASSERT_EQ(lines.size(), 65u);  // the header is first
  const size_t place = j["drawn"][2].get<size_t>();
  const auto row = nlohmann::json::parse(lines[1 + place]);
  lines[1 + place] = flipped(lines[1 + place], 3);
  const std::string bad = put("flipped.jsonl", joined(lines));
  o = samebits(line + bad);
  EXPECT_EQ(o.code, 1);
  const std::string at = std::to_string(row["prompt_len"].get<int>() + 3);
  EXPECT_THAT(o.out, HasSubstr("first in row \"" + row["id"].get<std::string>() + "\" at token " +
                               at + ": the log says "));
  const float was = row["logprobs"][3].get<float>();
  EXPECT_THAT(o.out, HasSubstr("0x" + hex64(float_bits(was)).substr(8)));
  EXPECT_THAT(o.out, HasSubstr("0x" + hex64(float_bits(was) ^ 1).substr(8)));
}

TEST(AuditProgram, ARolloutIsEqualAndOneFlippedBitIsNamed) {
  expect_audited("tiny", rolled("tiny", 64, "--max-new 8"));
}

TEST(AuditProgram, ARolloutOfMiniIsEqualAndOneFlippedBitIsNamed) {
  expect_audited("mini", rolled("mini", 64, "--max-new 4"));
}

TEST(AuditProgram, TheLogsProfileTemperatureAndSuppressedIdsAreUsed) {
  const std::string log =
      rolled("tiny", 6, "--max-new 6 --profile ieee --temperature 0.7 --suppress 3,5");
  const std::string line = "audit " + shared_model() + " --sample all --log " + log;
  const Outcome o = samebits(line);
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("profile ieee"));
  EXPECT_THAT(o.out, HasSubstr("6 of 6 rows"));
  EXPECT_EQ(samebits(line + " --tp 4 --threads 2").code, 0);
  EXPECT_EQ(samebits(line + " --profile sm90").code, 2);
  EXPECT_EQ(samebits(line + " --profile ieee").code, 0);
  EXPECT_EQ(samebits(line + " --temperature 1").code, 4);
}

TEST(AuditProgram, LogsOfOtherEnginesAndStandardInput) {
  auto lines = lines_of(rolled("tiny", 5, "--max-new 6"));
  lines.erase(lines.begin());
  std::string log = joined(lines);
  for (size_t at; (at = log.find("\"logprobs\"")) != log.npos;) log.replace(at, 10, "\"lp\"");
  const std::string line = "audit " + shared_model() + " --log ";
  EXPECT_EQ(samebits(line + "- --key logprobs=lp", log).code, 0);
  const Outcome o = samebits(line + put("lp.jsonl", log));
  EXPECT_EQ(o.code, 6);
  EXPECT_THAT(o.err, HasSubstr("--key logprobs=NAME"));
}

TEST(AuditProgram, EveryExitCode) {
  const std::string log = rolled("tiny", 4, "--max-new 6");
  const std::string line = "audit " + shared_model() + " --log ";
  EXPECT_EQ(samebits("audit " + shared_model("tiny", 1) + " --log " + log).code, 3);
  const std::string rows = put("rows.jsonl", rows_text());
  EXPECT_EQ(samebits(line + rows).code, 6);  // no log-probabilities
  EXPECT_EQ(samebits(line + put("empty.jsonl", "")).code, 6);
  EXPECT_EQ(samebits(line + scored("scores", "")).code, 6);  // digests, no tokens
  EXPECT_EQ(samebits(line + log + " --sample 0").code, 64);
  EXPECT_EQ(samebits(line + log + " --sample some").code, 64);
  EXPECT_EQ(samebits(line + log + " --key x=y").code, 64);
  EXPECT_EQ(samebits("audit " + shared_model()).code, 64);
  EXPECT_EQ(samebits(line + "/nonexistent").code, 64);
  EXPECT_EQ(samebits(line + log + " --backend cuda").code, 7);
  std::string text = read_text(log).value();
  const size_t at = text.find("\"logprobs\":[") + 12;
  text.replace(at, text.find_first_of(",]", at) - at, "NaN");
  const Outcome o = samebits(line + put("nan.jsonl", text));
  EXPECT_EQ(o.code, 6);
  EXPECT_THAT(o.out, HasSubstr("1 NaN or null"));
}

TEST(AuditProgram, APlantedFaultInTheRolloutIsSeen) {
  const std::string log = rolled("tiny", 4, "--max-new 40 --inject window-minus-1");
  EXPECT_EQ(samebits("audit " + shared_model() + " --log " + log).code, 1);
}

TEST(AuditProgram, HelpJsonAndHtml) {
  EXPECT_THAT(samebits("audit --help").out, HasSubstr("Examples:"));
  const std::string log = rolled("tiny", 4, "--max-new 6");
  const std::string page = scratch() + "/audit.html";
  const std::string line = "audit " + shared_model() + " --log " + log + " --force --html " + page;
  EXPECT_EQ(samebits(line).code, 0);
  EXPECT_THAT(read_text(page).value(), HasSubstr("EQUAL"));
  EXPECT_THAT(read_text(page).value(), testing::Not(HasSubstr("http")));
}

}  // namespace
}  // namespace sb
