// Tensor-parallel ranks in one process: the same bits on 1, 2, 4 and 8 of them at every boundary,
// with KV heads replicated where there are too few; and no rank's failure leaves others waiting.
#include "samebits/dist/virtual_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::three_rows;
using chain_testing::tiny;

Result<RunResult> on_ranks(int ranks, const RunOptions& run,
                           const std::vector<Sequence>& rows = three_rows()) {
  ThreadPool pool(1);
  return score_rows_ranks(tiny(), cpu(), pool, ranks, rows, run);
}

class VirtualRanksOf : public testing::TestWithParam<int> {};

// At 4 and 8 ranks the 2 global KV heads are held by 2 and 4 ranks each; at 8, three ranks have no
// vocabulary at all.
TEST_P(VirtualRanksOf, HaveTheBitsOfOneAtEveryBoundary) {
  for (const char* schedule : {"train", "chunked:16"}) {
    const RunResult want = score(three_rows(), run_of(schedule, true));
    const auto got = on_ranks(GetParam(), run_of(schedule, true));
    ASSERT_TRUE(ran(got)) << schedule;
    expect_same(got->logprobs, want.logprobs, schedule);
    expect_same(*got->trace, *want.trace, schedule);
  }
}

TEST_P(VirtualRanksOf, DecodeInEveryProfileWithTheBitsOfOne) {
  const std::vector<Sequence> rows{row("a", 34, 20, 71), row("b", 9, 2, 72)};
  for (const Profile profile : kProfiles) {
    RunOptions run = run_of("decode");
    run.session.profile = profile;
    run.session.temperature = 0.9f;
    run.session.suppress = {1, 2, 3};
    const auto got = on_ranks(GetParam(), run, rows);
    ASSERT_TRUE(ran(got));
    expect_same(got->logprobs, score(rows, run).logprobs, profile_name(profile));
  }
}

TEST_P(VirtualRanksOf, DrawTheTokensOfOne) {
  ThreadPool pool(1);
  const std::vector<Sequence> prompts{row("a", 3, 1, 73), row("b", 26, 1, 74)};
  RolloutOptions options;
  options.max_new = 8;
  options.seed = 9;
  options.session.suppress = {4, 2};
  options.session.temperature = 6.0f;  // at 1 the tiny model repeats itself
  for (const bool greedy : {false, true}) {
    options.greedy = greedy;
    const auto want = rollout_ranks(tiny(), cpu(), pool, 1, prompts, options);
    const auto got = rollout_ranks(tiny(), cpu(), pool, GetParam(), prompts, options);
    ASSERT_TRUE(ran(want));
    ASSERT_TRUE(ran(got));
    for (size_t s = 0; s < 2; ++s) {
      EXPECT_EQ(got->sequences[s].tokens, want->sequences[s].tokens);
    }
    expect_same(got->logprobs, want->logprobs, greedy ? "greedy" : "sampled");
  }
}

// Two ids whose embeddings, and so their logits, are equal and lie in shards of other ranks.
TEST_P(VirtualRanksOf, DrawTheLowestIdOfATie) {
  ThreadPool pool(1);
  const std::vector<Sequence> prompts{row("a", 6, 1, 75)};
  RolloutOptions options;
  options.max_new = 1;
  options.greedy = true;
  const auto before = rollout_ranks(tiny(), cpu(), pool, 1, prompts, options);
  ASSERT_TRUE(ran(before));
  const int32_t best = before->sequences[0].tokens.back();
  const int64_t width = tiny().arch.hidden;
  for (const int32_t twin : {3, 1023, 2499}) {  // in the first, second and fifth shard
    Model model = tiny();
    std::vector<bf16> table(static_cast<size_t>(model.weights.embed.numel()));
    cpu().copy_out(table.data(), model.weights.embed.ptr, table.size() * sizeof(bf16));
    std::copy_n(table.begin() + best * width, width, table.begin() + twin * width);
    model.weights.embed.ptr = model.weights.head.ptr = table.data();
    const auto got = rollout_ranks(model, cpu(), pool, GetParam(), prompts, options);
    ASSERT_TRUE(ran(got));
    EXPECT_EQ(got->sequences[0].tokens.back(), std::min(best, twin));
  }
}

TEST_P(VirtualRanksOf, KeepEveryFaultAtItsPlace) {
  const std::vector<Sequence> rows{row("a", 70, 5, 21), row("b", 50, 40, 22)};
  for (const FaultInfo& info : all_faults()) {
    const bool trains = info.schedules & schedule_bit(ScheduleKind::kTrain);
    RunOptions run = run_of(trains ? "train" : "decode", true);
    run.session.temperature = 0.7f;  // at 1 a second division changes nothing
    run.session.faults = {{info.kind, 0}};
    // One row decodes by itself where the fault needs it.
    const std::vector<Sequence> of = trains ? rows : std::vector<Sequence>{rows[0]};
    const auto got = on_ranks(GetParam(), run, of);
    ASSERT_TRUE(ran(got)) << info.name;
    RunOptions reference = run_of("train", true);
    reference.session.temperature = 0.7f;
    const auto clean = score(of, reference);
    const auto found = chain_testing::first_difference(*got->trace, *clean.trace);
    ASSERT_TRUE(found) << info.name;
    EXPECT_EQ(found->boundary, boundary_name(fault_boundary({info.kind}, tiny().arch)))
        << info.name;
  }
}

TEST_P(VirtualRanksOf, ReportProgressOnceAndRecordOneRank) {
  RunOptions run = run_of("chunked:16");
  int64_t calls = 0;
  run.progress = [&](int64_t, int64_t total) {
    EXPECT_EQ(total, 5 + 33 + 70);
    ++calls;
  };
  const auto got = on_ranks(GetParam(), run);
  ASSERT_TRUE(ran(got));
  EXPECT_EQ(calls, got->steps);
  const RunResult one = score(three_rows(), run_of("chunked:16"));
  EXPECT_EQ(got->tokens, one.tokens);
  for (const Record& r : got->records) EXPECT_FALSE(r.fallback);
}

INSTANTIATE_TEST_SUITE_P(VirtualRanks, VirtualRanksOf, testing::Values(1, 2, 4, 8),
                         [](const auto& test) { return "Tp" + std::to_string(test.param); });

TEST(VirtualRanks, OtherNumbersAreRefusedBeforeAnythingRuns) {
  RunOptions run = run_of("train");
  run.interrupted = [] {
    ADD_FAILURE() << "a rank has started";
    return false;
  };
  ThreadPool pool(1);
  for (const int ranks : {0, -1, 3, 16}) {
    EXPECT_TRUE(refused(on_ranks(ranks, run), "declared for 1, 2, 4 and 8 ranks"));
    EXPECT_TRUE(refused(rollout_ranks(tiny(), cpu(), pool, ranks, three_rows(), {}),
                        "declared for 1, 2, 4 and 8 ranks"));
  }
}

TEST(VirtualRanks, ARefusalOfAllRanksIsTheRunsRefusal) {
  RunOptions run = run_of("chunked:16");
  run.session.cache.num_pages = {0, 3};
  EXPECT_TRUE(refused(on_ranks(4, run), "lack for global layers", Code::kEnvironment));
}

TEST(VirtualRanks, RanksPollOneAtATime) {
  RunOptions run = run_of("decode");
  std::atomic<int> inside{0};
  int64_t polls = 0;  // not atomic: the sanitizer for threads would see a race
  run.interrupted = [&] {
    EXPECT_EQ(inside.fetch_add(1), 0);
    std::this_thread::yield();
    ++polls;
    inside.fetch_sub(1);
    return false;
  };
  ASSERT_TRUE(on_ranks(4, run));
  EXPECT_GE(polls, 4);
}

TEST(VirtualRanks, OneInterruptedRankEndsTheRun) {
  for (const char* schedule : {"train", "decode"}) {
    RunOptions run = run_of(schedule);
    std::atomic<int> asked{0};
    run.interrupted = [&] { return asked.fetch_add(1) == 3; };  // the other ranks go on
    EXPECT_TRUE(refused(on_ranks(4, run), "interrupted", Code::kInterrupted)) << schedule;
  }
}

#if defined(__x86_64__)
TEST(VirtualRanks, TheRankThatFailedIsNamedNotTheOnesThatWaitedForIt) {
  for (int victim = 0; victim < 4; ++victim) {
    RunOptions run = run_of("train");
    std::atomic<int> asked{0};
    run.interrupted = [&] {
      if (asked.fetch_add(1) == victim) _mm_setcsr(_mm_getcsr() | 0x8000);  // of its thread
      return false;
    };
    EXPECT_TRUE(refused(on_ranks(4, run), "floating-point control", Code::kEnvironment));
  }
}
#endif

}  // namespace
}  // namespace sb
