// Bad command lines, one table: exit code, message, and the same as JSON with --json.
#include <sys/stat.h>

#include <filesystem>

#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

struct Case {
  std::string args;
  int code;
  std::vector<std::string> says;
};

// The case as a person reads it, and as a program does; nothing is left behind.
void expect_refused(const Case& c) {
  SCOPED_TRACE(c.args);
  Outcome o = samebits(c.args);
  EXPECT_EQ(o.code, c.code) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("why:"));
  EXPECT_THAT(o.err, testing::Not(HasSubstr(".tmp.")));
  for (const auto& text : c.says) EXPECT_THAT(o.err, HasSubstr(text));
  o = samebits("--json " + c.args);
  EXPECT_EQ(o.code, c.code);
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << o.out;
  EXPECT_EQ(json["error"]["code"], c.code);
  EXPECT_FALSE(json["error"]["reasons"].empty());
}

TEST(BadCommand, NumbersNamesAndOptions) {
  const std::string out = " --out " + scratch() + "/never.jsonl";
  const std::string score = "score " + shared_model() + " --tokens " + rows_file() + out + " ";
  const std::string rollout = "rollout " + shared_model() + " --prompts " +
                              put("prompts.jsonl", R"({"id":"a","tokens":[2,9]})") + out + " ";
  const std::string verify = "verify " + shared_model() + " ";
  const std::string fresh = "model new " + scratch() + "/never ";
  const Case cases[] = {
      {"", 64, {"subcommand"}},
      {"sccore", 64, {"sccore"}},
      {"score", 64, {"required", "samebits score --help"}},
      {score + "--nothing 5", 64, {"--nothing 5"}},
      {score + "--tp 3", 64, {"--tp", "3"}},
      {score + "--tp 16", 64, {"--tp", "16"}},
      {score + "--threads -1", 64, {"--threads", "0 to 4096"}},
      {score + "--threads 5000", 64, {"--threads", "0 to 4096"}},
      {score + "--profile sm100", 64, {"--profile", "sm90"}},
      {score + "--backend gpu", 64, {"--backend", "cpu"}},
      {score + "--backend cuda", 7, {"cuda", "--backend cpu"}},
      {score + "--schedule sideways", 64, {"sideways", "chunked:N"}},
      {score + "--schedule chunked:0", 64, {"'0'", "positive"}},
      {score + "--schedule chunked:99999999999999999999", 64, {"99999999999999999999"}},
      {score + "--schedule decode:-1", 64, {"'-1'"}},
      {score + "--schedule decode --page 0", 64, {"--page", "1 to 65536"}},
      {score + "--schedule decode --page 65537", 64, {"--page", "1 to 65536"}},
      {score + "--page 5", 64, {"--page", "schedule train has no cache"}},
      {score + "--page-global 5", 64, {"--page-global", "no cache"}},
      {score + "--temperature 0", 5, {"temperature 0", "above 0"}},
      {score + "--temperature -1", 5, {"temperature -1", "above 0"}},
      {score + "--temperature nan", 5, {"temperature NaN"}},
      {score + "--temperature 1e999", 5, {"temperature infinity"}},
      {score + "--temperature warm", 64, {"--temperature", "warm"}},
      {score + "--suppress 2500", 64, {"--suppress 2500", "0 … 2499"}},
      {score + "--suppress -1", 64, {"--suppress", "\"-1\""}},
      {score + "--suppress 3,0x10", 64, {"\"0x10\""}},
      {score + "--suppress 5000000000", 64, {"5000000000"}},
      {score + "--key nonsense", 64, {"nonsense", "OURS=THEIRS"}},
      {score + "--inject none", 64, {"none", "window-plus-1"}},
      {score + "--inject window-plus-1:layer=99", 64, {"99"}},
      {rollout + "--seed -1", 64, {"--seed", "\"-1\""}},
      {rollout + "--seed 18446744073709551616", 64, {"18446744073709551616"}},
      {rollout + "--seed 0x7", 64, {"\"0x7\""}},
      {rollout + "--seed 7 --greedy", 64, {"--seed with --greedy"}},
      {rollout + "--max-new 0", 64, {"--max-new"}},
      {rollout + "--max-new 99999999999999999999", 64, {"--max-new"}},
      {rollout + "--stop 2500", 64, {"--stop 2500", "0 … 2499"}},
      {rollout + "--stop -1", 64, {"--stop", "\"-1\""}},
      {rollout + "--top-k 5", 5, {"--top-k 5", "distribution"}},
      {rollout + "--top-p 0.9", 5, {"--top-p 0.9", "distribution"}},
      {rollout + "--min-p 0.1", 5, {"--min-p 0.1"}},
      {rollout + "--repetition-penalty 1.1", 5, {"--repetition-penalty 1.1"}},
      {verify + "--suite none", 64, {"suite none", "hybrid-attention"}},
      {verify + "--records " + scratch() + "/absent.json", 64, {"absent.json"}},
      {verify + "--records " + put("text.json", "no JSON"), 6, {"text.json"}},
      {verify + "--records x --tp 2", 64, {"--tp with --records"}},
      {verify + "--records x --guard", 64, {"--guard with --records"}},
      {fresh + "--preset none", 64, {"none", "tiny"}},
      {fresh + "--seed -1", 64, {"--seed", "\"-1\""}},
      {fresh + "--shard-size 0", 64, {"\"0\" as a size"}},
      {fresh + "--shard-size 5bananas", 64, {"5bananas"}},
      {fresh + "--shard-size 99999999999999GB", 64, {"99999999999999GB"}},
      {fresh + "--prefix x.", 64, {"x."}},
      {"model new " + shared_model(), 64, {"config.json", "--force"}},
      {"model new " + scratch() + "/a/b/c", 7, {"a/b/c"}},
      {"model show " + scratch() + "/absent", 64, {"no such folder"}},
      {"model", 64, {"subcommand"}},
      {"bench arith --seconds nan", 64, {"--seconds", "nan"}},
      {"bench arith --seconds 0", 64, {"--seconds"}},
      {"doctor --mma-golden absent.bin", 64, {"absent.bin"}},
      {"doctor --backend cuda --mma-golden x", 64, {"--backend with --mma-golden"}},
      {"contract show none.v1", 64, {"none.v1", "rmsnorm.v1"}},
      {"help nothing", 64, {"no such topic"}},
      // Options that a command would ignore.
      {score + "--html x.html", 64, {"--html", "compare, verify"}},
      {"compare a b --tp 4", 64, {"--tp", "score, rollout, verify"}},
      {"compare a b --inject window-plus-1", 64, {"--inject", "score, rollout, verify"}},
      {"compare a b --profile ieee", 64, {"--profile", "score, rollout, verify"}},
      {"compare a b --threads 2", 64, {"--threads", "score"}},
      {"model show x --force", 64, {"model show has no use for --force"}},
      {"model new x --tp 2", 64, {"model new has no use for --tp"}},
      {"inject list --backend cpu", 64, {"inject list has no use for --backend"}},
      {"contract list --threads 2", 64, {"--threads"}},
      {"doctor --force", 64, {"doctor has no use for --force"}},
      {"doctor --shapes mini", 64, {"--shapes", "would be ignored", "--backend"}},
      {"doctor --profile ieee", 64, {"--profile", "would be ignored"}},
      {"bench arith --html x", 64, {"--html"}},
      {"help codes --force", 64, {"--force"}},
      {"demo --tp 2", 64, {"--tp"}},
  };
  for (const auto& c : cases) expect_refused(c);
  EXPECT_THAT(files_like("never"), IsEmpty());
}

TEST(BadCommand, InputsAndOutputs) {
  const std::string dir = scratch() + "/io_names";
  fs::create_directories(dir + "/sub");
  const std::string rows = put("io_names/rows.jsonl", rows_text()),
                    kept = put("io_names/kept", "x");
  fs::create_symlink("rows.jsonl", dir + "/link.jsonl");
  put("io_names/taken.jsonl.run.json", "x");
  ASSERT_EQ(mkfifo((dir + "/pipe").c_str(), 0600), 0);
  const std::string score = "score " + shared_model() + " --tokens ", on = score + rows + " --out ";
  const std::string fresh = dir + "/new.jsonl";
  const Case cases[] = {
      {"score " + dir + "/absent --tokens " + rows + " --out " + fresh, 64, {"no such folder"}},
      {"score " + dir + " --tokens " + rows + " --out " + fresh, 64, {"no config.json"}},
      {score + "no/such/x.jsonl --out " + fresh, 64, {"read no/such/x.jsonl"}},
      {score + dir + " --out " + fresh, 64, {"not a regular file"}},
      {score + dir + "/pipe --out " + fresh, 64, {"not a regular file"}},
      {on + kept, 64, {"kept", "exists already", "--force"}},
      {on + dir + "/sub", 64, {"sub", "it is a folder"}},
      {on + dir + "/none/x.jsonl", 7, {"none/x.jsonl", "there is no folder"}},
      {on + kept + "/x.jsonl", 7, {"kept/x.jsonl"}},
      {on + "/proc/x.jsonl", 7, {"write /proc/x.jsonl"}},
      {on + dir + "/pipe", 7, {"a pipe that nobody reads"}},
      {on + "/dev/full", 7, {"/dev/full", "No space left"}},
      {on + dir + "/taken.jsonl", 64, {"taken.jsonl.run.json", "exists already"}},
      {on + rows + " --force", 64, {"this run reads it (--tokens"}},
      {on + dir + "/link.jsonl --force", 64, {"this run reads it (--tokens"}},
      {on + dir + "/sub/../rows.jsonl --force", 64, {"this run reads it (--tokens"}},
      {on + shared_model() + "/config.json --force", 64, {"the checkpoint's"}},
      {on + shared_model() + "/model.safetensors --force", 64, {"the checkpoint's"}},
      {on + fresh + " --trace " + fresh, 64, {"both --out and --trace"}},
      {on + fresh + " --trace " + dir + "/sub/../new.jsonl", 64, {"both --out and --trace"}},
      {on + fresh + " --trace " + fresh + ".run.json", 64, {".run.json and --trace"}},
      {on + fresh + " --trace -", 64, {"--trace does not go to standard output"}},
      {on + fresh + " --trace " + kept, 64, {"kept", "another --trace"}},
      {on + fresh + " --trace " + dir + "/none/t.sbt", 7, {"none/t.sbt"}},
      {"verify " + shared_model() + " --html " + kept, 64, {"kept", "another --html"}},
      {"verify " + shared_model() + " --html -", 64, {"--html does not go to standard output"}},
      {"verify " + shared_model() + " --tokens " + rows + " --force --html " + rows,
       64,
       {"this run reads it (--tokens"}},
      {"rollout " + shared_model() + " --prompts " + rows + " --force --out " + rows,
       64,
       {"this run reads it (--prompts"}},
      {"model new " + kept, 64, {"kept"}},
  };
  for (const auto& c : cases) expect_refused(c);
  EXPECT_EQ(read_text(rows).value(), rows_text());
  EXPECT_EQ(read_text(kept).value(), "x");
  for (const auto& entry : fs::directory_iterator(dir)) {
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr("new.jsonl")));
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(".tmp.")));
  }
}

TEST(BadCommand, ADemoHasNoJson) {
  const Outcome o = samebits("demo --json");
  EXPECT_EQ(o.code, 64);
  EXPECT_THAT(o.out, HasSubstr("demo has no use for --json"));
}

TEST(BadCommand, DevicesGetNoFileBesideThem) {
  EXPECT_EQ(
      samebits("score " + shared_model() + " --tokens " + rows_file() + " --out /dev/null").code,
      0);
  EXPECT_FALSE(exists("/dev/null.run.json"));
}

TEST(HelpJson, EveryTopicParses) {
  for (const char* topic : {"", "codes", "formats", "boundaries", "score", "model", "compare"}) {
    const Outcome o = samebits(std::string("help --json ") + topic);
    EXPECT_EQ(o.code, 0);
    const auto json = nlohmann::json::parse(o.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << topic;
    EXPECT_EQ(json["samebits"], "help/1");
  }
  const auto codes = nlohmann::json::parse(samebits("help codes --json").out);
  EXPECT_EQ(codes["codes"].size(), codes["precedence"].size());
  const auto score = nlohmann::json::parse(samebits("help score --json").out);
  EXPECT_THAT(score.dump(), HasSubstr("--schedule"));
}

}  // namespace
}  // namespace sb
