// score_rows: a token's log-probability is one bit pattern per profile, however the rows are cut,
// packed, padded, paged or joined; and what cannot be scored is refused.
#include "samebits/chain/score.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::cpu;
using chain_testing::expect_same;
using chain_testing::expect_same_bits;
using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;
using chain_testing::run_of;
using chain_testing::score;
using chain_testing::three_rows;
using chain_testing::tiny;
using chain_testing::try_score;

// Each row alone through the training schedule.
Logprobs alone(const std::vector<Sequence>& rows, Profile profile = Profile::kSm90) {
  RunOptions run = run_of("train");
  run.packed = false;
  run.session.profile = profile;
  return score(rows, run).logprobs;
}

class ScoreProfiles : public testing::TestWithParam<Profile> {};

TEST_P(ScoreProfiles, SchedulesAgreeBitForBit) {
  const auto rows = three_rows();
  const Logprobs want = alone(rows, GetParam());
  for (const char* schedule :
       {"train", "prefill", "chunked:1", "chunked:7", "chunked:16", "chunked:63", "chunked:64",
        "chunked:65", "chunked:5,1,30", "decode", "decode:4"}) {
    RunOptions run = run_of(schedule);
    run.session.profile = GetParam();
    expect_same(score(rows, run, 2).logprobs, want, schedule);
  }
}

INSTANTIATE_TEST_SUITE_P(Score, ScoreProfiles, testing::ValuesIn(kProfiles),
                         [](const auto& test) { return std::string(profile_name(test.param)); });

TEST(Score, ProfilesAreThreeArithmetics) {
  const auto rows = three_rows();
  const auto a = alone(rows, Profile::kSm90)[2], b = alone(rows, Profile::kGfx942)[2],
             c = alone(rows, Profile::kIeee)[2];
  EXPECT_FALSE(ops_testing::same_bits(a, b));
  EXPECT_FALSE(ops_testing::same_bits(a, c));
  EXPECT_FALSE(ops_testing::same_bits(b, c));
}

TEST(Score, PaddingRowsOfAnyContentChangeNothing) {
  const std::vector<Sequence> rows{row("a", 5, 1, 1), row("b", 30, 22, 2)};
  const Logprobs want = alone(rows);
  for (const char* schedule : {"train", "chunked:7", "decode"}) {
    // Zeros, NaN, 9984, and infinities beside a subnormal.
    for (const std::vector<uint16_t>& fill :
         {std::vector<uint16_t>{}, {0x7fc0}, {0x461c}, {0x7f80, 0xff80, 0x0001}}) {
      RunOptions run = run_of(schedule);
      run.padding_rows = 2;
      run.pad_fill = fill;
      expect_same(score(rows, run).logprobs, want, std::string(schedule) + " with padding");
    }
  }
}

TEST(Score, NeighboursAndTheirOrderChangeNothing) {
  auto rows = three_rows();
  const Logprobs want = alone(rows);
  std::vector<Sequence> company{row("x", 17, 2, 51), rows[2], row("y", 90, 1, 52), rows[1],
                                rows[0]};
  for (const char* schedule : {"train", "chunked:7", "decode"}) {
    RunOptions run = run_of(schedule);
    run.join_every = 3;
    const Logprobs got = score(company, run).logprobs;
    expect_same({got[4], got[3], got[1]}, want, schedule);
  }
}

TEST(Score, CachedPrefixesChangeNothing) {
  auto rows = three_rows();
  rows.push_back(row("d", 40, 18, 3));  // its first tokens are those of "c"
  const Logprobs want = alone(rows);
  for (const int64_t prefix : {1, 8, 16, 17, 24, 32, 39}) {
    for (const char* schedule : {"prefill", "chunked:7", "decode"}) {
      RunOptions run = run_of(schedule);
      run.prefix = prefix;
      expect_same(score(rows, run).logprobs, want,
                  std::string(schedule) + " behind a prefix of " + std::to_string(prefix));
    }
  }
}

TEST(Score, PagesOfAnySizeLayoutOrderAndFillChangeNothing) {
  const auto rows = three_rows();
  const Logprobs want = alone(rows);
  for (const std::array<int, 2> size : {std::array<int, 2>{1, 3}, {16, 64}, {64, 16}, {7, 5}}) {
    for (const auto layout : {KvLayout::kSplit, KvLayout::kInterleaved}) {
      for (const uint64_t order : {0, 9}) {
        RunOptions run = run_of("chunked:13");
        run.session.cache.page_size = size;
        run.session.cache.layout = layout;
        run.session.cache.order_seed = order;
        run.session.cache.fill = order ? 0x7e : 0xff;
        expect_same(score(rows, run).logprobs, want, "pages of " + std::to_string(size[0]));
      }
    }
  }
}

TEST(Score, TemperatureAndSuppressedIdsAgreeInEverySchedule) {
  const auto rows = three_rows();
  RunOptions run = run_of("train");
  run.session.temperature = 0.7f;
  run.session.suppress = {7, 0, 1};  // ids that no row has
  const Logprobs want = score(rows, run).logprobs;
  EXPECT_FALSE(ops_testing::same_bits(want[2], alone(rows)[2]));
  for (const char* schedule : {"prefill", "chunked:7", "decode"}) {
    run.schedule = run_of(schedule).schedule;
    expect_same(score(rows, run).logprobs, want, schedule);
  }
  std::sort(run.session.suppress.begin(), run.session.suppress.end());
  expect_same(score(rows, run).logprobs, want, "the same ids in another order");
}

TEST(Score, ProgressGrowsToTheNumberOfTokens) {
  const auto rows = three_rows();
  for (const char* schedule : {"train", "prefill", "chunked:7", "decode"}) {
    for (const int64_t prefix : {0, 16}) {
      if (prefix && std::string(schedule) == "train") continue;
      RunOptions run = run_of(schedule);
      run.prefix = prefix;
      int64_t last = 0;
      run.progress = [&](int64_t done, int64_t total) {
        EXPECT_GT(done, last);
        EXPECT_EQ(total, 5 + 33 + 70);
        last = done;
      };
      const RunResult result = score(rows, run);
      EXPECT_EQ(last, 5 + 33 + 70);
      EXPECT_EQ(result.tokens, last);
    }
  }
}

TEST(Score, AnInterruptEndsTheRunBetweenTwoSteps) {
  for (const char* schedule : {"train", "prefill", "chunked:7", "decode"}) {
    RunOptions run = run_of(schedule);
    run.packed = false;  // a step for each row
    int64_t asked = 0, steps = 0;
    run.interrupted = [&] { return ++asked > 1; };
    run.progress = [&](int64_t, int64_t) { ++steps; };
    const auto result = try_score(three_rows(), run);
    if (std::string(schedule) == "prefill") {  // one step is all there is
      EXPECT_TRUE(ran(result));
    } else {
      EXPECT_TRUE(refused(result, "interrupted", Code::kInterrupted)) << schedule;
      EXPECT_EQ(steps, 1) << schedule;
    }
  }
}

TEST(Score, ARowEndsWithTheModelsLastPosition) {
  Model shorter = tiny();
  shorter.arch.max_position = 32;
  for (const char* schedule : {"train", "prefill", "chunked:7", "decode"}) {
    int64_t steps = 0;
    RunOptions run = run_of(schedule);
    run.progress = [&](int64_t, int64_t) { ++steps; };
    EXPECT_TRUE(ran(try_score({row("fits", 32, 1, 54)}, run, 1, shorter)));
    steps = 0;
    EXPECT_TRUE(refused(try_score({row("a", 5, 1, 1), row("long", 33, 1, 54)}, run, 1, shorter),
                        "33 tokens pass the model's last position 31"));
    EXPECT_EQ(steps, 0) << "nothing runs";
  }
}

TEST(Score, RowsWithoutAScoredTokenAreRefused) {
  EXPECT_TRUE(refused(try_score({}, run_of("train")), "there are none", Code::kBrokenData));
  for (const Sequence& bad : {row("r", 4, 4, 1), row("r", 4, 0, 1), row("r", 0, 1, 1)}) {
    EXPECT_TRUE(
        refused(try_score({bad}, run_of("decode")), "it has no scored token", Code::kBrokenData));
  }
}

TEST(Score, RowsOfOneIdAreRefusedInEverySchedule) {
  for (const char* schedule : {"train", "prefill", "decode"}) {
    EXPECT_TRUE(refused(
        try_score({row("r", 4, 1, 1), row("s", 4, 1, 2), row("r", 5, 1, 3)}, run_of(schedule)),
        "rows 0 and 2 have this id", Code::kBrokenData));
  }
}

TEST(Score, TooSmallACacheIsRefusedAndNamed) {
  RunOptions run = run_of("chunked:16");
  run.session.cache.num_pages = {0, 4};
  EXPECT_TRUE(
      refused(try_score(three_rows(), run), "lack for global layers: ", Code::kEnvironment));
}

TEST(Score, ALongRowLeavesTheWindowAndASegment) {
  const std::vector<Sequence> rows{row("long", 280, 1, 55)};  // segments of 128 keys
  const Logprobs want = alone(rows);
  for (const char* schedule : {"prefill", "chunked:127,1,3", "decode:20"}) {
    expect_same(score(rows, run_of(schedule), 2).logprobs, want, schedule);
  }
}

}  // namespace
}  // namespace sb
