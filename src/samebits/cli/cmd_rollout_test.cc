// samebits rollout, then score, then compare: what a rollout engine logs is what the trainer gets.
#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPrompts =
    "{\"id\":\"a\",\"tokens\":[2,105,17]}\n{\"id\":\"b\",\"tokens\":[2]}\n"
    "{\"id\":\"c\",\"tokens\":[2,44,1017,6,900,31,8,77]}\n";

// Rolls out into scratch()/NAME.jsonl; returns that path.
std::string rolled(const std::string& name, const std::string& flags) {
  const std::string out = scratch() + "/" + name + ".jsonl";
  const Outcome o =
      samebits("rollout " + shared_model() + " --prompts " + put("prompts.jsonl", kPrompts) +
               " --force --out " + out + " " + flags);
  EXPECT_EQ(o.code, 0) << flags << "\n" << o.err;
  return out;
}

void expect_rescored(const std::string& rollout, const std::string& flags) {
  const std::string scores = scratch() + "/rescored.jsonl";
  Outcome o = samebits("score " + shared_model() + " --tokens " + rollout + " --force --out " +
                       scores + " " + flags);
  EXPECT_EQ(o.code, 0) << o.err;
  o = samebits("compare " + rollout + " " + scores);
  EXPECT_EQ(o.code, 0) << flags << "\n" << o.out << o.err;
  EXPECT_THAT(o.out, HasSubstr("EQUAL"));
}

TEST(Rollout, RescoredInEveryScheduleItIsEqual) {
  const std::string rollout = rolled("r", "--max-new 30 --seed 7");
  for (const char* flags :
       {"", "--schedule prefill", "--schedule chunked:7", "--schedule decode", "--tp 4"}) {
    expect_rescored(rollout, flags);
  }
}

TEST(Rollout, TemperatureSuppressedIdsGreedyAndStopsCarryOver) {
  expect_rescored(rolled("warm", "--max-new 12 --temperature 0.7 --suppress 0,1,3"), "");
  expect_rescored(rolled("greedy", "--max-new 12 --greedy"), "");
  expect_rescored(rolled("ranks", "--max-new 12 --tp 4 --threads 2 --page 5"), "");
}

TEST(Rollout, SeedsDecideAndRanksThreadsAndPagesDoNot) {
  const std::string want = read_text(rolled("a", "--max-new 16 --seed 3")).value();
  EXPECT_EQ(read_text(rolled("b", "--max-new 16 --seed 3 --tp 2 --threads 1")).value(), want);
  EXPECT_EQ(read_text(rolled("b", "--max-new 16 --seed 3 --page 7 --page-global 64")).value(),
            want);
  EXPECT_NE(read_text(rolled("b", "--max-new 16 --seed 4")).value(), want);
}

TEST(Rollout, AFaultyRolloutDriftsFromTheTrainer) {
  const std::string rollout = rolled("bad", "--max-new 40 --inject window-minus-1");
  const std::string scores = scratch() + "/s.jsonl";
  EXPECT_EQ(samebits("score " + shared_model() + " --tokens " + rollout + " --out " + scores).code,
            0);
  const Outcome o = samebits("compare --json " + rollout + " " + scores);
  EXPECT_EQ(o.code, 1);
  EXPECT_GT(nlohmann::json::parse(o.out)["differing"], 0);
}

TEST(Rollout, TheFirstLineSaysWhatTheRunWas) {
  const std::string rollout = rolled("head", "--max-new 4 --temperature 0.7");
  const std::string text = read_text(rollout).value();
  const auto head = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(head["samebits"], "rollout/1");
  EXPECT_EQ(head["schedule"], "decode");
  EXPECT_EQ(head["profile"], "sm90");
  // Scored with other weights it is told by the digests, not by drift.
  const std::string scores = scratch() + "/other.jsonl";
  EXPECT_EQ(samebits("score " + shared_model("tiny", 1) + " --tokens " + rollout +
                     " --force --out " + scores)
                .code,
            0);
  EXPECT_EQ(samebits("compare " + rollout + " " + scores).code, 3);
}

TEST(Rollout, AStopEndsARow) {
  const auto first_row = [](const std::string& path) {
    const std::string text = read_text(path).value();
    const size_t begin = text.find('\n') + 1;  // behind the header
    return nlohmann::json::parse(text.substr(begin, text.find('\n', begin) - begin));
  };
  const int stop = first_row(rolled("free", "--max-new 8"))["tokens"][5];  // the third one drawn
  const auto row = first_row(rolled("stopped", "--max-new 8 --stop " + std::to_string(stop)));
  EXPECT_LE(row["tokens"].size(), 6u);
  EXPECT_EQ(row["tokens"].back(), stop);
  EXPECT_EQ(row["logprobs"].size(), row["tokens"].size() - 3);
}

TEST(Rollout, StandardInputAndOutput) {
  const std::string want = read_text(rolled("want", "--max-new 5")).value();
  const Outcome o =
      samebits("rollout " + shared_model() + " --prompts - --out - --max-new 5", kPrompts);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, want);
}

TEST(Rollout, ErrorsLeaveNothingBehind) {
  const std::string head = "rollout " + shared_model() + " --prompts ";
  const std::string out = " --out " + scratch() + "/none.jsonl";
  EXPECT_EQ(samebits(head + put("p", "{\"id\":\"a\",\"tokens\":[9999]}\n") + out).code, 6);
  EXPECT_EQ(samebits(head + put("p", "") + out).code, 6);
  EXPECT_EQ(samebits(head + put("p", kPrompts) + " --max-new 0" + out).code, 64);
  EXPECT_EQ(samebits(head + put("p", kPrompts) + " --backend cuda" + out).code, 7);
  EXPECT_EQ(samebits(head + put("p", kPrompts) + " --top-p 0.9" + out).code, 5);
  EXPECT_EQ(samebits(head + "/nonexistent" + out).code, 64);
  EXPECT_EQ(samebits(head + put("p", kPrompts) + " --temperature 0" + out).code, 5);
  EXPECT_EQ(samebits(head + put("p", kPrompts) + " --temperature nan" + out).code, 5);
  EXPECT_THAT(files_like("none"), IsEmpty());
}

TEST(Rollout, OutputIsNeverReplacedUnlessForced) {
  const std::string kept = put("kept_rollout.jsonl", "precious\n");
  const std::string line = "rollout " + shared_model() + " --prompts " + put("p", kPrompts) +
                           " --max-new 2 --out " + kept;
  EXPECT_EQ(samebits(line).code, 64);
  EXPECT_EQ(read_text(kept).value(), "precious\n");
  const Outcome o = samebits(line + " --force --json");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(nlohmann::json::parse(o.out)["rows"], 3);
}

}  // namespace
}  // namespace sb
