// samebits score: the same bytes from every schedule, any number of threads and ranks; outputs that
// appear whole or not at all; every refusal with its exit code.
#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The file without the one header field that may differ.
std::string without_schedule(const std::string& path) {
  std::string text = read_text(path).value();
  const size_t at = text.find(",\"schedule\":\""), end = text.find("\"}\n", at);
  EXPECT_LT(end, text.find('\n'));
  return text.erase(at, end + 1 - at);
}

std::string score(const std::string& rest, const std::string& tokens = rows_file()) {
  return "score " + shared_model() + " --tokens " + tokens + " " + rest;
}

TEST(Score, SchedulesWriteTheSameBytesButForTheirName) {
  const std::string train = scored("train", "");
  EXPECT_THAT(read_text(train).value(), HasSubstr("\"schedule\":\"train\""));
  for (const char* schedule : {"prefill", "chunked:7", "chunked:1,30,4", "decode", "decode:9"}) {
    const std::string other = scored("other", std::string("--schedule ") + schedule);
    EXPECT_THAT(read_text(other).value(),
                HasSubstr("\"schedule\":\"" + std::string(schedule) + "\""));
    EXPECT_EQ(without_schedule(other), without_schedule(train)) << schedule;
    EXPECT_EQ(samebits("compare " + other + " " + train).code, 0) << schedule;
  }
}

TEST(Score, ThreadsRanksAndPagesWriteTheSameBytes) {
  const std::string want = read_text(scored("want", "--threads 1")).value();
  for (const char* flags : {"--threads 2", "--threads 5", "--tp 2", "--tp 4", "--tp 8"}) {
    EXPECT_EQ(read_text(scored("got", flags)).value(), want) << flags;
  }
  const std::string decode = read_text(scored("decode", "--schedule decode")).value();
  for (const char* flags : {"--page 5", "--page 64 --page-global 16", "--tp 4 --threads 3"}) {
    EXPECT_EQ(read_text(scored("got", std::string("--schedule decode ") + flags)).value(), decode)
        << flags;
  }
}

TEST(Score, ProfilesAreNotComparable) {
  const std::string sm90 = scored("sm90", ""), ieee = scored("ieee", "--profile ieee");
  const Outcome o = samebits("compare " + sm90 + " " + ieee);
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.out, HasSubstr("profile"));
}

TEST(Score, OtherWeightsAre3AndAnotherTemperatureIs4) {
  const std::string a = scored("a", ""), warm = scored("warm", "--temperature 0.7");
  EXPECT_EQ(samebits("compare " + warm + " " + a).code, 4);
  EXPECT_EQ(samebits("compare " + scored("less", "--suppress 0,1") + " " + a).code, 4);
  const std::string other = scratch() + "/seed1.jsonl";
  EXPECT_EQ(
      samebits("score " + shared_model("tiny", 1) + " --tokens " + rows_file() + " --out " + other)
          .code,
      0);
  EXPECT_EQ(samebits("compare " + other + " " + a).code, 3);
}

TEST(Score, StandardInputAndOutput) {
  const std::string want = read_text(scored("want", "")).value();
  const Outcome o = samebits("score " + shared_model() + " --tokens - --out -", rows_text());
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, want);
  EXPECT_EQ(o.err, "");
}

TEST(Score, TraceValuesAreKeptAndTheirSizeIsSaidFirst) {
  const std::string a = scratch() + "/values_a.sbt", b = scratch() + "/values_b.sbt";
  const std::string want = " --trace-values layers.*.out,head.logit,logp --out " + scratch();
  const Outcome o = samebits(score("--trace " + a + want + "/va.jsonl"));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("MB of values at 8 boundaries"));
  EXPECT_EQ(
      samebits(score("--schedule decode --tp 4 --inject layer-scalar-dropped:layer=2 --trace " + b +
                     want + "/vb.jsonl"))
          .code,
      0);
  const Outcome drift = samebits("compare " + a + " " + b);
  EXPECT_EQ(drift.code, 1);
  EXPECT_THAT(drift.out, HasSubstr("layers.2.out, row"));
  EXPECT_THAT(drift.out, HasSubstr(", column "));
  EXPECT_EQ(samebits(score("--trace-values logp --out " + scratch() + "/n.jsonl")).code, 64);
  const Outcome no =
      samebits(score("--trace " + scratch() + "/n.sbt --trace-values layers.9.out --out " +
                     scratch() + "/n.jsonl"));
  EXPECT_EQ(no.code, 64);
  EXPECT_THAT(no.err, HasSubstr("samebits help boundaries"));
}

TEST(Score, RunJsonStandsBesideTheOutputAndHoldsRecords) {
  const std::string out = scored("run", "--schedule decode --tp 2 --threads 2");
  const auto j = nlohmann::json::parse(read_text(out + ".run.json").value());
  EXPECT_EQ(j["samebits"], "run/1");
  EXPECT_EQ(j["schedule"], "decode");
  EXPECT_EQ(j["tp"], 2);
  EXPECT_EQ(j["backend"], "cpu");
  EXPECT_EQ(j["tokens"], 5 + 33 + 80);
  EXPECT_GT(j["records"].size(), 100u);
  EXPECT_THAT(files_like("run."), testing::UnorderedElementsAre("run.jsonl", "run.jsonl.run.json"));
}

TEST(Score, OutputIsNeverReplacedUnlessForced) {
  const std::string out = put("kept_score.jsonl", "precious\n"),
                    trace = put("kept_score.sbt", "precious\n");
  Outcome o = samebits(score("--out " + out));
  EXPECT_EQ(o.code, 64);
  EXPECT_THAT(o.err, HasSubstr("kept_score.jsonl"));
  EXPECT_THAT(o.err, HasSubstr("--force"));
  EXPECT_EQ(read_text(out).value(), "precious\n");
  o = samebits(score("--out " + scratch() + "/new.jsonl --trace " + trace));
  EXPECT_EQ(o.code, 64);
  EXPECT_THAT(o.err, HasSubstr("kept_score.sbt"));
  EXPECT_EQ(read_text(trace).value(), "precious\n");
  EXPECT_THAT(files_like("new"), IsEmpty());
  EXPECT_THAT(files_like("kept_score.jsonl"), ElementsAre("kept_score.jsonl"));
  EXPECT_EQ(samebits(score("--force --out " + out + " --trace " + trace)).code, 0);
  EXPECT_EQ(samebits("compare " + trace + " " + trace).code, 0);
  EXPECT_NE(read_text(out).value(), "precious\n");
}

TEST(Score, OneNameForTwoOutputsIsUsage) {
  const std::string out = scratch() + "/both.x";
  EXPECT_EQ(samebits(score("--out " + out + " --trace " + out)).code, 64);
  EXPECT_THAT(files_like("both"), IsEmpty());
}

TEST(Score, AnErrorLeavesNothingBehind) {
  const std::string out = scratch() + "/none.jsonl";
  const std::string good = json_row(row_of("fine", 5, 1));
  const std::pair<std::string, int> broken[] = {
      {good + "{\"id\":\"x\",\"tokens\":[1,2]}\n", 6},  // no prompt_len
      {good + "{\"id\":\"x\",\"tokens\":[1,9999],\"prompt_len\":1}\n",
       6},                            // outside the vocabulary
      {good + "{\"id\":\"x\"\n", 6},  // not JSON
      {good + good, 6},               // an id twice
      {"", 6},
  };
  for (const auto& [text, code] : broken) {
    const std::string tokens = put("broken.jsonl", text);
    const Outcome o = samebits(score("--out " + out + " --trace " + out + ".sbt", tokens));
    EXPECT_EQ(o.code, code) << text;
    if (!text.empty()) {
      EXPECT_THAT(o.err, HasSubstr("line 2")) << text;
    }
    EXPECT_THAT(o.err, HasSubstr("broken.jsonl"));
    EXPECT_EQ(o.out, "");
  }
  EXPECT_EQ(
      samebits(score("--suppress " + std::to_string(row_of("a", 5, 1).tokens[3]) + " --out " + out))
          .code,
      6);
  EXPECT_EQ(samebits(score("--tp 4 --inject typo --out " + out)).code, 64);
  EXPECT_THAT(files_like("none"), IsEmpty());
}

TEST(Score, RowsAndCommandLineMustAgree) {
  const std::string tokens = put("warm.jsonl", json_row(row_of("a", 5, 1), ",\"temperature\":0.7"));
  const std::string out = " --out " + scratch() + "/t.jsonl --force";
  Outcome o = samebits(score("--temperature 1" + out, tokens));
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.err, HasSubstr("row \"a\""));
  EXPECT_EQ(samebits(score("--temperature 0.7" + out, tokens)).code, 0);
  EXPECT_EQ(samebits(score(out, tokens)).code, 0);
  EXPECT_THAT(read_text(scratch() + "/t.jsonl").value(), HasSubstr("\"temperature\":0.7,"));
}

TEST(Score, CommandLineErrorsAre64AndAMissingBackendIs7) {
  const std::string out = " --out " + scratch() + "/c.jsonl";
  EXPECT_EQ(samebits(score("--nothing" + out)).code, 64);
  EXPECT_EQ(samebits(score("--schedule sideways" + out)).code, 64);
  EXPECT_EQ(samebits(score("--schedule chunked:0" + out)).code, 64);
  EXPECT_EQ(samebits(score("--page 0" + out)).code, 64);
  EXPECT_EQ(samebits(score("--key x=y" + out)).code, 64);
  EXPECT_EQ(samebits("score " + shared_model() + out).code, 64);
  EXPECT_EQ(samebits("score /nonexistent --tokens " + rows_file() + out).code, 64);
  EXPECT_EQ(samebits(score(out, "/nonexistent.jsonl")).code, 64);
  for (const char* backend : {"cuda", "hip"}) {
    const Outcome o = samebits(score(std::string("--backend ") + backend + out));
    EXPECT_EQ(o.code, 7);
    EXPECT_THAT(o.err, HasSubstr("--backend cpu"));
  }
  EXPECT_THAT(files_like("c.jsonl"), IsEmpty());
}

TEST(Score, TemperaturesThatMakeNoSoftmaxAreRefused) {
  for (const char* t : {"0", "-1", "nan", "inf"}) {
    const Outcome o =
        samebits(score(std::string("--temperature=") + t + " --out " + scratch() + "/cold"));
    EXPECT_EQ(o.code, 5) << t << ": " << o.err;
  }
  EXPECT_THAT(files_like("cold"), IsEmpty());
}

TEST(Score, JsonOutputParses) {
  const std::string out = scratch() + "/j.jsonl";
  Outcome o = samebits(score("--json --out " + out));
  EXPECT_EQ(o.code, 0);
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["out"], out);
  EXPECT_EQ(j["rows"], 3);
  o = samebits(score("--json --out " + out));
  EXPECT_EQ(o.code, 64);
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["code"], 64);
  EXPECT_EQ(o.err, "");
}

}  // namespace
}  // namespace sb
