// Planted faults through the program: compare finds each at the boundary and position where it must
// show, while the faulty run's files claim exactly what a clean run's do.
#include "samebits/cli/program_testing.h"

namespace sb {
namespace {

using namespace testing_program;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::Not;

struct Planted {
  const char* fault;
  const char* schedule;
  const char* boundary;
  int position;
};

// The rows have prompts of 1, 4 and 20 tokens; the window is 24 keys, a page 16, a block 64.
const Planted kPlanted[] = {
    {"softcap-missing", "train", "head.softcap", 0},
    {"softcap-bf16", "decode", "head.softcap", 0},
    {"window-minus-1", "chunked:7", "layers.0.attn.ctx", 23},
    {"window-plus-1", "decode", "layers.0.attn.ctx", 24},
    {"layer-scalar-dropped:layer=3", "prefill", "layers.3.out", 0},
    {"embed-scale-unrounded", "train", "embed", 0},
    {"gemm-leaf-order:layer=2", "decode", "layers.2.mlp.down.acc", 0},
    {"swapped-page", "decode", "layers.0.attn.ctx", 32},
    {"stale-slot", "decode", "layers.0.attn.ctx", 1},
    {"key-leak", "train", "layers.0.attn.ctx", 0},
    {"dropped-last-block", "decode", "layers.0.attn.ctx", 64},
    {"rope-swap", "train", "layers.0.attn.q_rope", 1},
    {"p-rope-exponent", "prefill", "layers.5.attn.q_rope", 1},
    {"p-rope-pairing", "decode", "layers.5.attn.q_rope", 1},
    {"v-after-k-norm", "train", "layers.5.attn.v_norm", 0},
    {"norm-one-plus-w", "chunked:7", "layers.0.attn.norm", 0},
    {"softcap-twice", "train", "head.softcap", 0},
    {"softcap-x-tanh", "decode", "head.softcap", 0},
    {"temperature-twice", "train --temperature 0.7", "head.lse", 0},
    {"row-shift", "decode", "logp", 0},
    {"gate-up-swapped:layer=2", "train", "layers.2.mlp.gelu", 0},
    {"stale-slot", "decode:8", "layers.0.attn.ctx", 1},
};

class InjectedRun : public testing::TestWithParam<Planted> {};

TEST_P(InjectedRun, IsFoundByCompareAndByNothingElse) {
  const Planted& p = GetParam();
  const std::string clean_trace = scratch() + "/clean.sbt", bad_trace = scratch() + "/bad.sbt";
  const std::string schedule = std::string("--schedule ") + p.schedule;
  const std::string clean = scored("clean", schedule + " --trace " + clean_trace);
  const std::string bad =
      scored("bad", schedule + " --inject " + p.fault + " --trace " + bad_trace);

  Outcome o = samebits("compare " + clean_trace + " " + clean_trace);
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("EQUAL"));
  o = samebits("compare " + bad_trace + " " + clean_trace);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, HasSubstr("DRIFT"));
  EXPECT_THAT(o.out, HasSubstr(p.boundary));
  o = samebits("compare --json " + bad_trace + " " + clean_trace);
  EXPECT_EQ(o.code, 1);
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["kind"], "trace");
  EXPECT_EQ(j["first"]["boundary"], p.boundary);
  EXPECT_EQ(j["first"]["position"], p.position);
  EXPECT_GT(j["differing"], 0);

  // Neither file says so: same header, and no word of the fault in the files beside it.
  const std::string a = read_text(clean).value(), b = read_text(bad).value();
  EXPECT_EQ(a.substr(0, a.find('\n')), b.substr(0, b.find('\n')));
  const std::string name = std::string(p.fault).substr(0, std::string(p.fault).find(':'));
  for (const std::string& file : {bad, bad + ".run.json", bad_trace}) {
    const std::string text = read_text(file).value();
    EXPECT_THAT(text, Not(HasSubstr(name))) << file;
    EXPECT_THAT(text, Not(HasSubstr("inject"))) << file;
    EXPECT_THAT(text, Not(HasSubstr("fault"))) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, InjectedRun, testing::ValuesIn(kPlanted), [](const auto& param) {
  std::string name = std::string(param.param.fault) + " " + param.param.schedule;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Injected, TheTruthIsOnStandardErrorOnly) {
  const Outcome o = samebits(
      "score " + shared_model() + " --tokens - --out - --inject softcap-bf16", rows_text());
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("planted fault: softcap-bf16, first at head.softcap"));
  EXPECT_THAT(o.out, Not(HasSubstr("softcap")));
}

TEST(Injected, RecordsClaimTheSameContracts) {
  const auto records = [](const std::string& path) {
    return nlohmann::json::parse(read_text(path + ".run.json").value())["records"];
  };
  const auto clean = records(scored("clean", "--schedule decode"));
  EXPECT_EQ(records(scored("bad", "--schedule decode --inject gemm-leaf-order:layer=2")), clean);
}

TEST(Injected, TracesOfDifferentSchedulesAreEqualWithoutAFault) {
  const std::string train = scratch() + "/train.sbt";
  scored("train", "--trace " + train);
  for (const char* schedule : {"prefill", "chunked:7", "decode"}) {
    const std::string other = scratch() + "/other.sbt";
    scored("other", std::string("--schedule ") + schedule + " --trace " + other);
    EXPECT_EQ(samebits("compare " + other + " " + train).code, 0) << schedule;
  }
  const std::string ranks = scratch() + "/ranks.sbt";
  scored("ranks", "--tp 4 --threads 2 --schedule decode --trace " + ranks);
  EXPECT_EQ(samebits("compare " + ranks + " " + train).code, 0);
}

}  // namespace
}  // namespace sb
