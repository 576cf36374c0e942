// Rollout: what a row draws depends on its tokens, its id and the seed, never on how or with whom
// it runs; and training gives every drawn token the log-probability it was drawn with.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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
using chain_testing::tiny;

std::vector<Sequence> prompts() {
  return {row("a", 3, 1, 61), row("b", 30, 1, 62), row("c", 11, 1, 63)};
}
// Hot enough for many different tokens; at 1 the tiny model repeats itself.
RolloutOptions drawing(int64_t max_new = 12) {
  RolloutOptions o;
  o.max_new = max_new;
  o.seed = 5;
  o.session.temperature = 6.0f;
  return o;
}

Result<RolloutResult> try_roll(const std::vector<Sequence>& of, const RolloutOptions& options,
                               int threads = 1, const Model& model = tiny()) {
  ThreadPool pool(threads);
  Parallel alone;
  return rollout(model, cpu(), pool, alone, of, options);
}
RolloutResult roll(const std::vector<Sequence>& of, const RolloutOptions& options,
                   int threads = 1) {
  auto result = try_roll(of, options, threads);
  EXPECT_TRUE(ran(result));
  return result ? std::move(*result) : RolloutResult{};
}

std::vector<int32_t> drawn(const RolloutResult& r, size_t s) {
  const Sequence& q = r.sequences[s];
  return {q.tokens.begin() + q.prompt_len, q.tokens.end()};
}
void expect_same_draws(const RolloutResult& actual, const RolloutResult& expected,
                       const std::string& what) {
  ASSERT_EQ(actual.sequences.size(), expected.sequences.size());
  for (size_t s = 0; s < actual.sequences.size(); ++s) {
    EXPECT_EQ(actual.sequences[s].tokens, expected.sequences[s].tokens) << what << ", row " << s;
  }
  expect_same(actual.logprobs, expected.logprobs, what);
}
// The training schedule on what was drawn.
void expect_training_agrees(const RolloutResult& r, const RolloutOptions& options) {
  RunOptions run = run_of("train");
  run.session.temperature = options.session.temperature;
  run.session.suppress = options.session.suppress;
  expect_same(r.logprobs, score(r.sequences, run).logprobs, "rescored by train");
}

TEST(Rollout, TrainingGivesDrawnTokensTheSameBits) {
  for (const bool greedy : {false, true}) {
    RolloutOptions options = drawing(40);  // beyond the window
    options.greedy = greedy;
    const RolloutResult r = roll(prompts(), options);
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(r.sequences[s].prompt_len, prompts()[s].size());
      EXPECT_EQ(drawn(r, s).size(), 40u);
      EXPECT_EQ(r.logprobs[s].size(), 40u);
      const auto ids = drawn(r, s);
      const auto distinct = std::set<int32_t>(ids.begin(), ids.end()).size();
      EXPECT_GT(distinct, greedy ? 0u : 20u) << "sampled rows show the noise";
    }
    expect_training_agrees(r, options);
  }
}

TEST(Rollout, ARowDrawsTheSameAloneInCompanyAndInAnyOrder) {
  const RolloutResult together = roll(prompts(), drawing());
  for (size_t s = 0; s < 3; ++s) {
    const RolloutResult alone = roll({prompts()[s]}, drawing());
    EXPECT_EQ(drawn(alone, 0), drawn(together, s));
    expect_same({alone.logprobs[0]}, {together.logprobs[s]}, "alone");
  }
  auto turned = prompts();
  std::rotate(turned.begin(), turned.begin() + 1, turned.end());
  for (const int join_every : {0, 1, 5, 20}) {
    RolloutOptions options = drawing();
    options.join_every = join_every;
    const RolloutResult r = roll(turned, options);
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(drawn(r, s), drawn(together, (s + 1) % 3)) << "joining every " << join_every;
      expect_same({r.logprobs[s]}, {together.logprobs[(s + 1) % 3]}, "joining");
    }
  }
}

TEST(Rollout, ThreadsAndPagesChangeNoDraw) {
  const RolloutResult want = roll(prompts(), drawing());
  for (const int threads : {2, 7}) {
    expect_same_draws(roll(prompts(), drawing(), threads), want, "threads");
  }
  for (const std::array<int, 2> size : {std::array<int, 2>{1, 5}, {64, 16}}) {
    for (const auto layout : {KvLayout::kSplit, KvLayout::kInterleaved}) {
      RolloutOptions options = drawing();
      options.session.cache.page_size = size;
      options.session.cache.layout = layout;
      options.session.cache.order_seed = 3;
      expect_same_draws(roll(prompts(), options), want, "pages");
    }
  }
}

TEST(Rollout, NoiseComesFromTheSeedAndTheRowsId) {
  const Sequence one = prompts()[2];
  Sequence renamed = one;
  renamed.id = "another name";
  const RolloutResult both = roll({one, renamed}, drawing());
  EXPECT_NE(drawn(both, 0), drawn(both, 1)) << "one prompt twice gives two answers";
  RolloutOptions other = drawing();
  other.seed = 6;
  EXPECT_NE(drawn(roll({one}, other), 0), drawn(both, 0));
  RolloutOptions greedy = drawing();
  greedy.greedy = true;
  const RolloutResult g = roll({one, renamed}, greedy);
  EXPECT_EQ(drawn(g, 0), drawn(g, 1)) << "greedy rows draw no noise";
  EXPECT_NE(drawn(g, 0), drawn(both, 0));
  other.greedy = true;
  EXPECT_EQ(drawn(roll({one}, other), 0), drawn(g, 0));
}

TEST(Rollout, ARowContinuedFromItsOwnAnswerDrawsOn) {
  const RolloutResult whole = roll({prompts()[2]}, drawing());
  Sequence longer = prompts()[2];
  const auto ids = drawn(whole, 0);
  longer.tokens.insert(longer.tokens.end(), ids.begin(), ids.begin() + 5);
  const RolloutResult rest = roll({longer}, drawing(7));
  EXPECT_EQ(rest.sequences[0].tokens, whole.sequences[0].tokens) << "positions count from token 0";
}

TEST(Rollout, AGreedyTokenIsTheMostProbableOne) {
  RolloutOptions greedy = drawing(3);
  greedy.greedy = true;
  const RolloutResult r = roll({prompts()[0]}, greedy);
  // No other id does better in its place; a sample of ids from the whole vocabulary.
  Sequence base = r.sequences[0];
  base.tokens.resize(static_cast<size_t>(base.prompt_len) + 1);
  std::vector<Sequence> others;
  for (int32_t id = 3; id < 2500; id += 97) {
    others.push_back(base);
    others.back().id = "with " + std::to_string(id);
    others.back().tokens.back() = id;
  }
  RunOptions run = run_of("train");
  run.session.temperature = greedy.session.temperature;
  for (const auto& row : score(others, run).logprobs) EXPECT_LE(row[0], r.logprobs[0][0]);
}

TEST(Rollout, AStopIdEndsItsRowAndIsKept) {
  const RolloutResult whole = roll(prompts(), drawing());
  RolloutOptions options = drawing();
  options.stop = {2600, drawn(whole, 1)[4]};
  int64_t last = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_EQ(total, 36);
    last = done;
  };
  const RolloutResult r = roll(prompts(), options);
  EXPECT_EQ(last, 36) << "a row that stops early counts as done";
  for (size_t s = 0; s < 3; ++s) {
    auto want = drawn(whole, s);
    const auto stop = std::find(want.begin(), want.end(), options.stop[1]);
    if (stop != want.end()) want.erase(stop + 1, want.end());
    EXPECT_EQ(drawn(r, s), want);
    EXPECT_EQ(r.logprobs[s].size(), want.size());
  }
  EXPECT_LE(drawn(r, 1).size(), 5u);
}

TEST(Rollout, SuppressedIdsAreNeverDrawn) {
  RolloutOptions options = drawing();
  options.greedy = true;
  for (int round = 0; round < 3; ++round) {
    const RolloutResult r = roll(prompts(), options);
    const std::vector<int32_t> banned = options.session.suppress;
    for (size_t s = 0; s < 3; ++s) {
      for (const int32_t id : drawn(r, s)) {
        EXPECT_EQ(std::count(banned.begin(), banned.end(), id), 0) << id;
        options.session.suppress.push_back(id);  // unsorted, with repeats
      }
    }
    RolloutOptions then = options;
    then.session.suppress = banned;
    expect_training_agrees(r, then);
  }
}

TEST(Rollout, AVocabularyWithNothingLeftIsRefused) {
  RolloutOptions options = drawing();
  for (int32_t id = 0; id < 2500; ++id) options.session.suppress.push_back(id);
  EXPECT_TRUE(refused(try_roll(prompts(), options), "every id is suppressed"));
}

TEST(Rollout, TheModelsLastPositionIsALimit) {
  Model shorter = tiny();
  shorter.arch.max_position = 32;
  EXPECT_TRUE(ran(try_roll({row("r", 30, 1, 62)}, drawing(2), 1, shorter)));
  for (const int64_t max_new : {int64_t{3}, INT64_MAX}) {
    EXPECT_TRUE(refused(try_roll({row("r", 30, 1, 62)}, drawing(max_new), 1, shorter),
                        "would pass the model's last position 31"));
  }
}

TEST(Rollout, EmptyWorkIsRefused) {
  EXPECT_TRUE(refused(try_roll({}, drawing()), "there are none", Code::kBrokenData));
  EXPECT_TRUE(
      refused(try_roll({row("r", 0, 1, 1)}, drawing()), "its prompt is empty", Code::kBrokenData));
  EXPECT_TRUE(refused(try_roll(prompts(), drawing(0)), "at least one is needed", Code::kUsage));
  EXPECT_TRUE(refused(try_roll({row("r", 3, 1, 1), row("r", 4, 1, 2)}, drawing()),
                      "rows 0 and 1 have this id", Code::kBrokenData));
  RolloutOptions interrupted = drawing();
  interrupted.interrupted = [] { return true; };
  EXPECT_TRUE(refused(try_roll(prompts(), interrupted), "interrupted", Code::kInterrupted));
}

}  // namespace
}  // namespace sb
