// Bad token rows, one table: each case names its exit code and what the message must say. Whatever
// the fault, no output is left and standard output stays empty.
#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::IsEmpty;

struct RowCase {
  const char* what;
  std::string line;  // stands behind a good row, so it is line 2
  int code;
  std::vector<std::string> says;
};

std::string with_tokens(const std::string& tokens, int prompt_len = 1) {
  return R"({"id":"x","tokens":)" + tokens + R"(,"prompt_len":)" + std::to_string(prompt_len) + "}";
}
std::string with(const std::string& more) {
  return R"({"id":"x","tokens":[2,10,11],"prompt_len":1,)" + more + "}";
}

std::vector<RowCase> row_cases() {
  const std::string limit = "0…2499";
  std::string long_row = "[2";
  for (int i = 0; i < 262144; ++i) long_row += ",10";
  return {
      {"negative id", with_tokens("[2,-1,5]"), 6, {"tokens[1] = -1", limit}},
      {"id V", with_tokens("[2,2500,5]"), 6, {"tokens[1] = 2500", limit}},
      {"id 2^32", with_tokens("[2,4294967296,5]"), 6, {"tokens[1] = 4294967296", limit}},
      {"id of uninitialised memory",
       with_tokens("[2,5279552648203111001]"),
       6,
       {"tokens[1] = 5279552648203111001", limit}},
      {"id beyond int64", with_tokens("[2,99999999999999999999]"), 6, {"tokens[1]", limit}},
      {"fractional id", with_tokens("[2,1.5]"), 6, {"tokens[1] = 1.5"}},
      {"id as text", with_tokens(R"([2,"7"])"), 6, {"tokens[1] = \"7\""}},
      {"null id", with_tokens("[2,null]"), 6, {"tokens[1] = null"}},
      {"no tokens", with_tokens("[]"), 6, {"tokens holds 0 ids", "at least 2"}},
      {"one token", with_tokens("[2]"), 6, {"tokens holds 1 ids", "at least 2"}},
      {"tokens are no array", with_tokens("7"), 6, {"tokens = 7, not an array"}},
      {"tokens missing", R"({"id":"x","prompt_len":1})", 6, {"\"tokens\" is missing"}},
      {"positions beyond the model",
       with_tokens(long_row + "]"),
       5,
       {"tokens holds 262145 ids", "positions", "shorter rows"}},
      {"prompt_len 0", with_tokens("[2,10,11]", 0), 6, {"prompt_len = 0 is not in 1…2"}},
      {"prompt_len of the whole row", with_tokens("[2,10,11]", 3), 6, {"prompt_len = 3", "1…2"}},
      {"prompt_len beyond the row", with_tokens("[2,10,11]", 9), 6, {"prompt_len = 9", "1…2"}},
      {"prompt_len negative", with_tokens("[2,10,11]", -1), 6, {"prompt_len = -1", "1…2"}},
      {"prompt_len missing", R"({"id":"x","tokens":[2,10]})", 6, {"\"prompt_len\" is missing"}},
      {"prompt_len null",
       R"({"id":"x","tokens":[2,10],"prompt_len":null})",
       6,
       {"prompt_len = null"}},
      {"cut line", R"({"id":"x","tok)", 6, {"not JSON at column"}},
      {"no JSON at all", "hello", 6, {"not JSON at column 1"}},
      {"an array", "[1,2]", 6, {"not a JSON object"}},
      {"zero bytes", std::string(3, '\0'), 6, {"not JSON at column 1"}},
      {"not UTF-8", "{\"id\":\"\xff\",\"tokens\":[2,10],\"prompt_len\":1}", 6, {"UTF-8"}},
      {"a surrogate alone", R"({"id":"\ud800","tokens":[2,10],"prompt_len":1})", 6, {"not JSON"}},
      {"a key twice", with(R"("id":"y")"), 6, {"the key \"id\" appears twice"}},
      {"nested deeply",
       with("\"z\":" + std::string(100, '[') + std::string(100, ']')),
       6,
       {"nested deeper than 64"}},
      {"row id missing", R"({"tokens":[2,10],"prompt_len":1})", 6, {"\"id\" is missing"}},
      {"row id empty", R"({"id":"","tokens":[2,10],"prompt_len":1})", 6, {"id is empty"}},
      {"row id an object", R"({"id":{},"tokens":[2,10],"prompt_len":1})", 6, {"id = an object"}},
      {"row id twice",
       R"({"id":"good","tokens":[2,10],"prompt_len":1})",
       6,
       {"row \"good\"", "appeared before, in line 1"}},
      {"too few logprobs", with(R"("logprobs":[-1])"), 6, {"logprobs holds 1 values", "= 2"}},
      {"too many logprobs", with(R"("logprobs":[-1,-1,-1])"), 6, {"logprobs holds 3 values"}},
      {"logprob NaN", with(R"("logprobs":[-1,NaN])"), 6, {"NaN and Infinity are not JSON"}},
      {"logprob null", with(R"("logprobs":[null,-1])"), 6, {"logprobs[0] = null"}},
      {"logprob beyond fp32",
       with(R"("logprobs":[-1,-1e39])"),
       6,
       {"logprobs[1] = -1e39 is not a finite number"}},
      {"logprob beyond double",
       with(R"("logprobs":[-1,-1e999])"),
       6,
       {"number overflow", "-1e999"}},
      {"logprob infinite in bits",
       with(R"("logprobs":["0xff800000",-1])"),
       6,
       {"logprobs[0] = \"0xff800000\" is not finite"}},
      {"logprob positive", with(R"("logprobs":[-1,0.5])"), 6, {"logprobs[1] = 0.5 is positive"}},
      {"mask too short", with(R"("mask":[1])"), 6, {"mask must hold", "it holds 1"}},
      {"mask of 2", with(R"("mask":[1,2])"), 6, {"mask[1] = 2 is not 0 or 1"}},
      {"temperature 0", with(R"("temperature":0)"), 6, {"temperature = 0", "above 0"}},
      {"temperature negative", with(R"("temperature":-0.5)"), 6, {"temperature = -0.5"}},
      {"temperature text", with(R"("temperature":"hot")"), 6, {"temperature = \"hot\""}},
      {"suppress no array", with(R"("suppress":3)"), 6, {"suppress = 3, not an array"}},
      {"suppress id V", with(R"("suppress":[2500])"), 6, {"suppress[0] = 2500", limit}},
      {"suppressed and scored",
       with(R"("suppress":[11])"),
       6,
       {"tokens[2] = 11 is scored and in suppress"}},
  };
}

TEST(BadRows, AreRefusedByLineRowValueAndLimit) {
  const std::string good = R"({"id":"good","tokens":[2,10],"prompt_len":1})";
  const auto cases = row_cases();
  EXPECT_GE(cases.size(), 40u);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const std::string tokens = put("bad_rows.jsonl", good + "\n" + c.line + "\n");
    const Outcome o = samebits("score " + shared_model() + " --tokens " + tokens + " --out " +
                               scratch() + "/never.jsonl");
    EXPECT_EQ(o.code, c.code) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_THAT(o.err, HasSubstr("bad_rows.jsonl"));
    EXPECT_THAT(o.err, HasSubstr("line 2"));
    EXPECT_THAT(o.err, testing::Not(HasSubstr("json.exception")));
    for (const auto& text : c.says) EXPECT_THAT(o.err, HasSubstr(text));
  }
  EXPECT_THAT(files_like("never"), IsEmpty());
}

struct FileCase {
  const char* what;
  std::string text, flags;
  int code;
  std::vector<std::string> says;
};

TEST(BadRows, WholeFilesAreRefusedByName) {
  const std::string plain = R"({"id":"a","tokens":[2,10],"prompt_len":1})",
                    warm = R"({"id":"b","tokens":[2,10],"prompt_len":1,"temperature":0.7})",
                    hot = R"({"id":"c","tokens":[2,10],"prompt_len":1,"temperature":1.5})",
                    less = R"({"id":"d","tokens":[2,10],"prompt_len":1,"suppress":[5]})",
                    fewer = R"({"id":"e","tokens":[2,10],"prompt_len":1,"suppress":[6]})";
  const FileCase cases[] = {
      {"empty", "", "", 6, {"it holds no rows"}},
      {"blank", "\n \n\t\n", "", 6, {"it holds no rows"}},
      {"two temperatures", warm + "\n" + hot, "", 4, {"row \"c\"", "1.5", "row \"b\"", "0.7"}},
      {"a temperature after none",
       plain + "\n" + warm,
       "",
       4,
       {"row \"b\"", "row \"a\" is not given"}},
      {"none after a temperature", warm + "\n" + plain, "", 4, {"row \"a\"", "is not given"}},
      {"two lists", less + "\n" + fewer, "", 4, {"row \"e\"", "[6]", "row \"d\"", "[5]"}},
      {"a list after none", plain + "\n" + less, "", 4, {"row \"d\"", "suppress"}},
      {"another temperature is asked for",
       warm,
       "--temperature 1",
       4,
       {"row \"b\"", "0.7", "the command line's 1"}},
      {"another list is asked for",
       less,
       "--suppress 6",
       4,
       {"row \"d\"", "the command line's [6]"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    for (const char* schedule : {"train", "decode"}) {
      const Outcome o = samebits(
          "score " + shared_model() + " --tokens - --out - --schedule " + schedule + " " + c.flags,
          c.text);
      EXPECT_EQ(o.code, c.code) << o.err;
      EXPECT_EQ(o.out, "") << "standard output is an output too";
      for (const auto& text : c.says) EXPECT_THAT(o.err, HasSubstr(text));
    }
  }
  // What the command line says for all is no contradiction.
  EXPECT_EQ(samebits("score " + shared_model() + " --tokens - --out - --temperature 0.7",
                     plain + "\n" + warm)
                .code,
            0);
}

TEST(BadRows, VerifyRunsRowsAtTheirOwnTemperature) {
  const std::string rows =
      put("warm_rows.jsonl", json_row(row_of("a", 33, 4), ",\"temperature\":0.7"));
  const Outcome o =
      samebits("verify --json --suite hybrid-attention " + shared_model() + " --tokens " + rows);
  EXPECT_EQ(o.code, 0) << o.err;
  const std::string mixed =
      put("mixed_rows.jsonl",
          json_row(row_of("a", 5, 1)) + json_row(row_of("b", 5, 1), ",\"temperature\":0.7"));
  const Outcome no = samebits("verify " + shared_model() + " --tokens " + mixed);
  EXPECT_EQ(no.code, 4);
  EXPECT_THAT(no.err, HasSubstr("row \"b\""));
}

TEST(BadRows, PromptsAreHeldToTheSameRules) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"id":"x","tokens":[]})", "at least 1"},
      {R"({"id":"x","tokens":[-1]})", "tokens[0] = -1"},
      {R"({"id":"x","tokens":[2500]})", "0…2499"},
      {R"({"id":"x","tokens":[2],"prompt_len":2})", "prompt_len = 2"},
      {"{\"id\":\"x\",\"tokens\":[2]}\n{\"id\":\"x\",\"tokens\":[3]}",
       "appeared before, in line 1"},
  };
  for (const auto& [line, says] : cases) {
    const Outcome o = samebits("rollout " + shared_model() + " --prompts - --out -", line);
    EXPECT_EQ(o.code, 6) << line;
    EXPECT_EQ(o.out, "");
    EXPECT_THAT(o.err, HasSubstr(says));
  }
  const Outcome o =
      samebits("rollout " + shared_model() + " --prompts - --out - --max-new 2000000000",
               R"({"id":"x","tokens":[2]})");
  EXPECT_EQ(o.code, 5);
  EXPECT_THAT(o.err, HasSubstr("last position"));
}

}  // namespace
}  // namespace sb
