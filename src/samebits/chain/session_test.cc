// One rank's engine: what it refuses before anything runs, and that nothing above the operators
// looks behind a View.
#include "samebits/chain/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::OpenSession;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::three_rows;
using chain_testing::tiny;
using chain_testing::try_score;

// A guarded device is slow: it shuts every page after each operator.
std::vector<Sequence> short_rows() { return {row("a", 3, 1, 41), row("b", 6, 4, 42)}; }

TEST(Session, NothingAboveTheOperatorsLooksBehindAView) {
  const auto guard = make_guard_device();
  const Model guarded = chain_testing::load_tiny(*guard);
  const auto rows = short_rows();
  const RunResult want = score(rows, run_of("train", true));
  for (const char* schedule : {"train", "prefill", "chunked:4", "decode"}) {
    const bool traced = std::string(schedule) == "train";
    const RunResult got = score(rows, run_of(schedule, traced), 2, guarded, *guard);
    expect_same(got.logprobs, want.logprobs, schedule);
    if (traced) expect_same(*got.trace, *want.trace, schedule);
  }
}

TEST(Session, CacheMovesAndSamplingStayBehindTheGuardToo) {
  const auto guard = make_guard_device();
  const Model guarded = chain_testing::load_tiny(*guard);
  RunOptions prefix = run_of("prefill");
  prefix.prefix = 3;  // a partial page is copied
  const auto rows = short_rows();
  expect_same(score(rows, prefix, 1, guarded, *guard).logprobs,
              score(rows, run_of("train")).logprobs, "prefix");
  RolloutOptions options;
  options.max_new = 3;
  options.session.suppress = {5, 7};
  options.session.temperature = 6.0f;
  ThreadPool pool(1);
  Parallel alone;
  const auto want = rollout(tiny(), cpu(), pool, alone, rows, options);
  const auto got = rollout(guarded, *guard, pool, alone, rows, options);
  ASSERT_TRUE(ran(want));
  ASSERT_TRUE(ran(got));
  expect_same(got->logprobs, want->logprobs, "rollout");
  EXPECT_EQ(got->sequences[0].tokens, want->sequences[0].tokens);
}

TEST(Session, ThreadsAndUnpoisonedBuffersChangeNoBit) {
  const auto rows = three_rows();
  for (const char* schedule : {"train", "chunked:7"}) {
    const RunResult want = score(rows, run_of(schedule, true));
    for (int threads : {2, 7}) {
      const RunResult got = score(rows, run_of(schedule, true), threads);
      expect_same(got.logprobs, want.logprobs, schedule);
      expect_same(*got.trace, *want.trace, schedule);
    }
    RunOptions clean = run_of(schedule);
    clean.session.poison_arena = false;
    expect_same(score(rows, clean).logprobs, want.logprobs, "no poison");
  }
}

#if defined(__x86_64__)
TEST(Session, ACallerThatFlushesSubnormalsIsRefused) {
  const auto rows = short_rows();
  ASSERT_GT(tiny().arch.vocab, 0);  // loaded before the flags change: loading would refuse them too
  const unsigned before = _mm_getcsr();
  for (const unsigned bit : {0x8000u, 0x0040u, 0x2000u}) {  // FTZ, DAZ, another rounding
    for (int threads : {1, 2}) {
      _mm_setcsr(before | bit);
      const auto result = try_score(rows, run_of("train"), threads);
      _mm_setcsr(before);
      EXPECT_TRUE(refused(result, "floating-point control", Code::kEnvironment));
    }
  }
  EXPECT_TRUE(ran(try_score(rows, run_of("train"))));
}
#endif

TEST(Session, TemperaturesThatAreNotFiniteAndPositiveAreRefused) {
  for (const float t :
       {0.0f, -1.0f, -0.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    RunOptions run = run_of("train");
    run.session.temperature = t;
    EXPECT_TRUE(refused(try_score(short_rows(), run), "must be finite and positive")) << t;
  }
}

TEST(Session, SuppressedIdsLieInTheVocabulary) {
  for (const int32_t id : {-1, 2500}) {
    RunOptions run = run_of("train");
    run.session.suppress = {3, id};
    EXPECT_TRUE(
        refused(try_score(short_rows(), run), "the vocabulary is 0 … 2499", Code::kBrokenData));
  }
}

TEST(Session, ASuppressedTargetHasNoLogProbability) {
  const auto rows = short_rows();
  const int32_t target = rows[1].tokens[5];
  for (const std::vector<int32_t>& ids :
       {std::vector<int32_t>{target}, {2499, target, 0}, {target, 2, 1, 0}}) {  // in any order
    for (const char* schedule : {"train", "decode"}) {
      RunOptions run = run_of(schedule);
      run.session.suppress = ids;
      EXPECT_TRUE(refused(try_score(rows, run), "it is suppressed", Code::kBrokenData));
    }
  }
}

TEST(Session, TokensOutsideTheVocabularyNeverReachAnOperator) {
  for (const int32_t id : {-1, 2500, INT32_MAX}) {
    for (const char* schedule : {"train", "decode"}) {
      auto rows = short_rows();
      rows[1].tokens[2] = id;
      EXPECT_TRUE(refused(try_score(rows, run_of(schedule)), "the vocabulary ends at 2499"));
    }
  }
}

TEST(Session, SlotsOutsideTheCacheAreRefused) {
  const auto rows = short_rows();
  OpenSession s;
  ASSERT_TRUE(ran(s->make_cache({4, 2})));
  KvCache& cache = s->cache();
  const auto h = *cache.open("a");
  ASSERT_TRUE(ran(cache.extend(h, 3)));
  for (int g = 0; g < 2; ++g) {
    StepBuilder builder(rows);
    builder.add(0, 0, 3, 0);
    builder.describe(cache, h, 3);
    builder.batch().slot[g][1] = (g == 0 ? 4 : 2) * 16;  // one past the last
    EXPECT_TRUE(refused(s->step(builder.batch(), ScheduleKind::kPrefill), "outside the cache"));
  }
}

TEST(Session, AStepWithoutScoredRowsReturnsNothing) {
  const auto rows = short_rows();
  OpenSession s;
  StepBuilder builder(rows);
  builder.add(1, 0, 3, 0);  // the prompt has 4 tokens
  const auto head = s->step(builder.batch(), ScheduleKind::kTrain);
  ASSERT_TRUE(ran(head));
  EXPECT_TRUE(head->logp.empty());
  EXPECT_TRUE(head->token.empty());
}

TEST(Session, BuffersAreGivenBackAfterEveryStep) {
  const auto rows = three_rows();
  OpenSession s;
  size_t high = 0;
  for (int i = 0; i < 3; ++i) {
    StepBuilder builder(rows);
    builder.add(1, 0, 33, 0);
    ASSERT_TRUE(ran(s->step(builder.batch(), ScheduleKind::kTrain)));
    if (i == 0) high = s->arena_high_water();
    EXPECT_EQ(s->arena_high_water(), high);
  }
  EXPECT_GT(high, 0u);
}

}  // namespace
}  // namespace sb
