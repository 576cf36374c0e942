// The program as users and scripts see it: exit codes, standard output and standard error.
#include <sys/wait.h>
#include <unistd.h>

#include "samebits/cli/program_testing.h"
#include "samebits/gate/score_file.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::StartsWith;

std::string scores(float second, const std::string& weights = "w1") {
  const RunHeader header{.model = "m",
                         .weights = weights,
                         .contracts = "c:1",
                         .profile = "sm90",
                         .temperature = 1,
                         .suppress = {},
                         .schedule = "train"};
  return score_header_line(header) +
         score_row_line({"r1", token_digest(std::vector<int32_t>{1, 2, 3}), 1, {-1.0f, second}});
}

TEST(Program, UsageErrorsAre64) {
  EXPECT_EQ(samebits("").code, 64);
  EXPECT_EQ(samebits("nonsense").code, 64);
  EXPECT_EQ(samebits("compare").code, 64);
  EXPECT_EQ(samebits("compare a b c").code, 64);
  EXPECT_EQ(samebits("--profile sm80 help").code, 64);
  EXPECT_EQ(samebits("--tp 3 help").code, 64);
  EXPECT_EQ(samebits("help nothing").code, 64);
  EXPECT_THAT(samebits("compare a b --nothing").err, HasSubstr("--nothing"));
}

TEST(Program, HelpAndVersion) {
  Outcome o = samebits("--version");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, StartsWith("samebits "));
  o = samebits("--help");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("Examples:"));
  EXPECT_THAT(o.out, HasSubstr("--profile"));
  o = samebits("help codes");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("64, 6, 2, 3, 4, 5, 7, 1, 0"));
  EXPECT_THAT(samebits("help formats").out, HasSubstr("score/1"));
  EXPECT_THAT(samebits("help boundaries").out, HasSubstr("layers.i.mlp.down.acc"));
  EXPECT_EQ(samebits("help").out, samebits("--help").out);
  EXPECT_THAT(samebits("help compare").out, HasSubstr("--comparator"));
  EXPECT_THAT(samebits("compare --help").out, HasSubstr("Examples:"));
}

TEST(Program, CompareExitsWithTheVerdict) {
  const std::string a = put("a.jsonl", scores(-2)), b = put("b.jsonl", scores(-2.5));
  Outcome o = samebits("compare " + a + " " + a);
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, StartsWith("EQUAL  all 2 log-probabilities of 1 row"));
  EXPECT_EQ(o.err, "");
  o = samebits("compare " + a + " " + b);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, HasSubstr("0xc0200000  -2.5"));
  EXPECT_EQ(samebits("compare " + a + " " + put("w.jsonl", scores(-2, "w2"))).code, 3);
  EXPECT_EQ(samebits("compare " + a + " " + put("cut.jsonl", scores(-2).substr(0, 200))).code, 6);
  o = samebits("compare " + a + " " + a + ".none");
  EXPECT_EQ(o.code, 64);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("a.jsonl.none"));
  EXPECT_EQ(samebits("compare " + a + " " + b + " --comparator allclose").code, 64);
  EXPECT_EQ(samebits("compare " + a + " " + b + " --key x=y").code, 64);
}

// One engine labels its log-probabilities one token too late: no file says so, the numbers do.
TEST(Program, AShiftByOneIsNamedInScoresAndInTraces) {
  const std::string trace = scratch() + "/straight.sbt", bad_trace = scratch() + "/shifted.sbt";
  const std::string clean = scored("straight", "--trace " + trace);
  const std::string bad = scored("shifted", "--inject row-shift --trace " + bad_trace);
  Outcome o = samebits("compare " + bad + " " + clean);
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.out, HasSubstr("shifted by one: B[i] holds what A[i−1] holds"));
  o = samebits("compare --json " + bad_trace + " " + trace);
  EXPECT_EQ(o.code, 1);
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["first"]["boundary"], "logp");
  EXPECT_THAT(j["hint"].get<std::string>(), HasSubstr("shifted by one"));
  EXPECT_EQ(j["signatures"][0], "shift");
}

TEST(Program, StandardInputIsOneSide) {
  const std::string a = put("a.jsonl", scores(-2));
  EXPECT_EQ(samebits("compare - " + a, scores(-2)).code, 0);
  EXPECT_EQ(samebits("compare " + a + " -", scores(-3)).code, 1);
  EXPECT_EQ(samebits("compare - -", scores(-3)).code, 64);
}

TEST(Program, JsonOnStandardOutputAlsoForRefusals) {
  const std::string a = put("a.jsonl", scores(-2)), b = put("b.jsonl", scores(-2.5));
  Outcome o = samebits("compare " + a + " " + b + " --json");
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(nlohmann::json::parse(o.out)["differing"], 1);
  o = samebits("--json compare " + a + " " + put("bad.jsonl", "{"));
  EXPECT_EQ(o.code, 6);
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["code"], 6);
  EXPECT_EQ(o.err, "");
}

TEST(Program, HtmlIsWrittenOnceUnlessForced) {
  const std::string a = put("a.jsonl", scores(-2)), b = put("b.jsonl", scores(-2.5));
  const std::string page = scratch() + "/report.html";
  unlink(page.c_str());
  EXPECT_EQ(samebits("compare " + a + " " + b + " --html " + page).code, 1);
  EXPECT_THAT(read_text(page).value(), HasSubstr("DRIFT"));
  EXPECT_EQ(samebits("compare " + a + " " + b + " --html " + page).code, 64);
  EXPECT_EQ(samebits("compare " + a + " " + b + " --force --html " + page).code, 1);
  EXPECT_EQ(samebits("compare " + a + " " + b + " --html /nonexistent/x.html").code, 7);
}

TEST(Program, FullDiskIsNoSuccess) {
  const std::string a = put("a.jsonl", scores(-2));
  const std::string command =
      std::string(SB_PROGRAM) + " compare " + a + " " + a + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Program, InterruptIs130) {
  const std::string a = put("a.jsonl", scores(-2));
  // The program waits for standard input, which never ends, until it is interrupted.
  const std::string command = "sh -c 'mkfifo " + a + ".fifo 2>/dev/null; " +
                              std::string(SB_PROGRAM) + " compare - " + a + " <>" + a +
                              ".fifo >/dev/null 2>&1 & p=$!; "
                              "sleep 0.3; kill -TERM $p; wait $p'";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

}  // namespace
}  // namespace sb
