// Opening a model for a run: what is refused, and what a run's header says of it.
#include "samebits/gate/engine.h"

#include "samebits/contract/contract.h"
#include "samebits/gate/engine_testing.h"

namespace sb {
namespace {

using namespace testing_engine;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::StartsWith;

Refusal refusal_of(const std::string& dir, const EngineOptions& options) {
  const auto engine = Engine::open(dir, options);
  EXPECT_FALSE(engine);
  return engine ? Refusal{Code::kEqual} : engine.error();
}

TEST(Engine, BackendsThatAreNotBuiltAreTheEnvironment) {
  for (const char* backend : {"hip"}) {
    const Refusal r = refusal_of(shared_model(), {.backend = backend});
    EXPECT_EQ(r.code, Code::kEnvironment);
    EXPECT_THAT(r.text(), HasSubstr(backend));
    EXPECT_THAT(r.text(), HasSubstr("--backend cpu"));
  }
}

// Without CUDA in the build, or without a GPU and its driver, cuda is the environment's fault too.
TEST(Engine, CudaRunsOrSaysWhatIsMissing) {
  const auto engine = Engine::open(shared_model(), {.backend = "cuda"});
  if (engine) {  // a GPU: tools/gpu_run.sh tests what runs on it
    EXPECT_EQ(engine->device->id().kind, DeviceId::kCuda);
    return;
  }
  EXPECT_EQ(engine.error().code, Code::kEnvironment);
  EXPECT_THAT(engine.error().text(), HasSubstr("backend cuda"));
  EXPECT_THAT(engine.error().text(), HasSubstr("--backend cpu"));
}

TEST(Engine, VirtualRanksStayOnTheCpu) {
  const Refusal r = refusal_of(shared_model(), {.backend = "cuda", .tp = 2});
  EXPECT_EQ(r.code, Code::kRefused);
  EXPECT_THAT(r.text(), HasSubstr("2 virtual ranks"));
}

TEST(Engine, UnknownNamesAreUsage) {
  EXPECT_EQ(refusal_of(shared_model(), {.backend = "tpu"}).code, Code::kUsage);
  EXPECT_EQ(refusal_of(shared_model(), {.profile = "sm80"}).code, Code::kUsage);
  EXPECT_EQ(refusal_of(shared_model(), {.inject = {"typo"}}).code, Code::kUsage);
  EXPECT_EQ(refusal_of(shared_model(), {.inject = {"gemm-leaf-order:layer=6"}}).code, Code::kUsage);
  EXPECT_EQ(refusal_of(shared_model(), {.inject = {"key-leak:layer=0"}}).code, Code::kUsage);
  EXPECT_EQ(refusal_of(scratch() + "/nowhere", {}).code, Code::kUsage);
  EXPECT_THAT(refusal_of(shared_model(), {.inject = {"typo"}}).text(), HasSubstr("window-plus-1"));
}

TEST(Engine, RanksThatDoNotDivideTheModelAreRefused) {
  EXPECT_EQ(refusal_of(shared_model(), {.tp = 3}).code, Code::kRefused);
  EXPECT_EQ(refusal_of(shared_model(), {.tp = 16}).code, Code::kRefused);
}

TEST(Engine, ProfilesAreThreeNames) {
  for (Profile p : kProfiles) EXPECT_EQ(parse_profile(profile_name(p)).value(), p);
  EXPECT_FALSE(parse_profile(""));
  EXPECT_FALSE(parse_profile("SM90"));
}

TEST(Engine, TheHeaderSaysWhatTheRunIs) {
  Engine engine = open_engine({.profile = "gfx942", .threads = 2});
  RunOptions run = engine.run_options(schedule_of("chunked:7,3"));
  run.session.temperature = 0.5f;
  run.session.suppress = {3, 9};
  const RunHeader h = engine.header(run);
  EXPECT_EQ(h.profile, "gfx942");
  EXPECT_EQ(h.schedule, "chunked:7,3");
  EXPECT_EQ(h.temperature, 0.5f);
  EXPECT_EQ(h.suppress, (std::vector<int32_t>{3, 9}));
  EXPECT_EQ(h.contracts, contract_set());
  EXPECT_THAT(h.contracts, StartsWith("gemma4.strict.v1:"));
  EXPECT_EQ(h.model, engine.model->arch_digest);
  EXPECT_EQ(h.weights, engine.model->weights_digest);
}

TEST(Engine, AFaultDoesNotShowInTheHeader) {
  Engine clean = open_engine(), faulty = open_engine({.threads = 2, .inject = {"softcap-bf16"}});
  ASSERT_EQ(faulty.faults.size(), 1u);
  const RunHeader a = clean.header(clean.run_options({}));
  const RunHeader b = faulty.header(faulty.run_options({}));
  EXPECT_EQ(a.contracts, b.contracts);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.profile, b.profile);
  EXPECT_EQ(a.schedule, b.schedule);
}

TEST(Engine, SeedsAreOtherWeightsOfTheSameModel) {
  Engine zero = open_engine();
  const auto one = Engine::open(shared_model("tiny", 1), {.threads = 1});
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(zero.model->arch_digest, one->model->arch_digest);
  EXPECT_NE(zero.model->weights_digest, one->model->weights_digest);
}

TEST(Engine, ScoresAreTheSameBitsForAnyThreadsRanksAndMemory) {
  const auto rows = few_rows();
  Engine plain = open_engine({.threads = 1});
  const auto want = plain.score(rows, plain.run_options({})).value().logprobs;
  ASSERT_EQ(want.size(), rows.size());
  const EngineOptions others[] = {{.threads = 2},
                                  {.threads = 7},
                                  {.threads = 2, .tp = 2},
                                  {.threads = 1, .tp = 8},
                                  {.threads = 2, .guard = true}};
  for (const auto& options : others) {
    Engine engine = open_engine(options);
    const auto got = engine.score(rows, engine.run_options({})).value().logprobs;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].size(), static_cast<size_t>(rows[i].num_scored()));
      for (size_t j = 0; j < want[i].size(); ++j) {
        EXPECT_EQ(float_bits(got[i][j]), float_bits(want[i][j])) << i << " " << j;
      }
    }
  }
}

TEST(Engine, ProfilesAreDifferentBits) {
  const auto rows = few_rows();
  std::vector<Logprobs> all;
  for (const char* profile : {"sm90", "gfx942", "ieee"}) {
    Engine engine = open_engine({.profile = profile, .threads = 2});
    all.push_back(engine.score(rows, engine.run_options({})).value().logprobs);
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(all[0], all[2]);
  EXPECT_NE(all[1], all[2]);
}

}  // namespace
}  // namespace sb
