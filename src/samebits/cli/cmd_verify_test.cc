// samebits verify and the help of every command, as a script sees them.
#include "samebits/cli/program_testing.h"

#include <sstream>

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string verify(const std::string& flags) {
  return "verify " + shared_model() + " --tokens " + rows_file() + " " + flags;
}

TEST(VerifyCommand, AnEqualMatrixIsZero) {
  const Outcome o = samebits(verify("--threads 2"));
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_THAT(o.out, StartsWith("EQUAL"));
  EXPECT_EQ(o.err, "");
}

TEST(VerifyCommand, AFaultIsOneAndIsNamedOnStandardErrorOnly) {
  const std::string page = scratch() + "/v.html";
  const Outcome o =
      samebits(verify("--json --suite hybrid-attention --inject window-plus-1 --html " + page));
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("planted fault: window-plus-1, first at layers.0.attn.ctx"));
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["code"], 1);
  for (const auto& s : j["scenarios"]) {
    EXPECT_EQ(s["boundary"], "layers.0.attn.ctx") << s;
    EXPECT_EQ(s["position"], 24) << s;
  }
  EXPECT_THAT(read_text(page).value(), HasSubstr("layers.0.attn.ctx"));
}

TEST(VerifyCommand, RefusalsHaveTheirCodes) {
  EXPECT_EQ(samebits(verify("--suite none")).code, 64);
  EXPECT_EQ(samebits(verify("--inject none")).code, 64);
  EXPECT_EQ(samebits(verify("--backend hip")).code, 7);
  EXPECT_EQ(samebits(verify("--nothing")).code, 64);
  EXPECT_EQ(samebits("verify /nonexistent").code, 64);
  EXPECT_EQ(samebits("verify " + shared_model() + " --tokens " + put("bad", "{\n")).code, 6);
  const Outcome o = samebits(verify("--json --backend cuda"));
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["code"], 7);
}

// Names of the commands below "Subcommands:" of a help text.
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Subcommands:") || line.starts_with("SUBCOMMANDS:")) {
      inside = true;
    } else if (inside && line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (line.empty() || line[0] != ' ') {
      inside = false;
    }
  }
  return names;
}

void expect_helpful(const std::string& command) {
  const Outcome o = samebits(command + " --help");
  EXPECT_EQ(o.code, 0) << command;
  EXPECT_EQ(o.err, "") << command;
  EXPECT_THAT(o.out, HasSubstr("Examples:")) << command;
  for (const auto& name : commands_of(o.out)) {
    expect_helpful(command.empty() ? name : command + " " + name);
  }
}

TEST(Help, EveryCommandHasExamplesAndExitsWithZero) {
  EXPECT_THAT(commands_of(samebits("--help").out),
              testing::IsSupersetOf({"model", "score", "rollout", "verify", "compare", "help"}));
  EXPECT_THAT(commands_of(samebits("model --help").out), testing::ElementsAre("new", "show"));
  expect_helpful("");
}

TEST(Help, NamesTheCommonOptionsThatACommandTakes) {
  EXPECT_THAT(samebits("contract show --help").out, HasSubstr("--help): --json\n"));
  EXPECT_THAT(samebits("help compare").out, HasSubstr("--help): --html --force --json\n"));
  EXPECT_THAT(samebits("demo --help").out, testing::Not(HasSubstr("Common options")));
  EXPECT_THAT(samebits("score --help").out, HasSubstr("--tokens FILE REQUIRED"));
}

TEST(Json, EveryReportParses) {
  EXPECT_EQ(
      nlohmann::json::parse(samebits("model show --json " + shared_model()).out).count("digest"),
      1u);
  const std::string made = scratch() + "/made";
  Outcome o = samebits("model new --json " + made);
  EXPECT_EQ(o.code, 0);
  EXPECT_TRUE(nlohmann::json::parse(o.out).is_object());
  o = samebits("model new --json " + made);
  EXPECT_EQ(o.code, 64);
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["code"], 64);
  o = samebits("model show --json /nonexistent");
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["code"], o.code);
  EXPECT_EQ(o.code, 64);
}

}  // namespace
}  // namespace sb
