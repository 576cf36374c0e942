#include "samebits/dist/virtual_ranks.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "samebits/base/bits.h"
#include "samebits/dist/thread_comm.h"

namespace sb {
namespace {

bool same_bits(const Logprobs& a, const Logprobs& b) {
  if (a.size() != b.size()) return false;
  for (size_t s = 0; s < a.size(); ++s) {
    if (a[s].size() != b[s].size()) return false;
    for (size_t i = 0; i < a[s].size(); ++i) {
      if (float_bits(a[s][i]) != float_bits(b[s][i])) return false;
    }
  }
  return true;
}

// Runs body(rank, pool, parallel) on every rank. The first rank to stop wakes the others, whose
// Refusals are its consequence: its own is the one returned.
template <class T, class Body>
Result<std::vector<T>> on_ranks(int ranks, Body body) {
  ThreadComm comm(ranks);
  std::vector<Result<T>> results(ranks, Result<T>(tl::unexpect, Refusal{}));
  std::atomic<int> first_to_stop{-1};
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadPool pool(1);
      results[r] = body(r, pool, comm.member(r));
      if (results[r]) return;
      int none = -1;
      first_to_stop.compare_exchange_strong(none, r);
      comm.abort();
    });
  }
  threads.clear();  // joins
  if (first_to_stop >= 0) return tl::unexpected(results[first_to_stop].error());
  std::vector<T> out;
  for (auto& r : results) out.push_back(std::move(*r));
  return out;
}

// Ranks poll from their own threads; the caller's function is never run by two of them at once.
std::function<bool()> one_at_a_time(std::mutex& mutex, std::function<bool()> interrupted) {
  if (!interrupted) return interrupted;
  return [&mutex, interrupted = std::move(interrupted)] {
    std::lock_guard lock(mutex);
    return interrupted();
  };
}

tl::unexpected<Refusal> disagree(int rank) {
  return refuse(Code::kDrift, "agree among ranks",
                "rank " + std::to_string(rank) + " and rank 0 came to different bits");
}

}  // namespace

Result<RunResult> score_rows_ranks(const Model& model, Device& device, ThreadPool& pool, int ranks,
                                   const std::vector<Sequence>& sequences,
                                   const RunOptions& options) {
  if (ranks == 1) {
    Parallel alone;
    return score_rows(model, device, pool, alone, sequences, options);
  }
  SB_TRY(plan, plan_rank(model.arch, 0, ranks));
  SB_ASSERT(plan.size == ranks, "a plan of another size");
  std::mutex polling;
  SB_TRY(parts, on_ranks<RunResult>(ranks, [&](int rank, ThreadPool& own, Parallel& parallel) {
           RunOptions mine = options;
           mine.interrupted = one_at_a_time(polling, options.interrupted);
           if (rank != 0) mine.progress = nullptr;
           return score_rows(model, device, own, parallel, sequences, mine);
         }));
  for (int r = 1; r < ranks; ++r) {
    if (!same_bits(parts[0].logprobs, parts[r].logprobs)) return disagree(r);
    if (parts[0].trace) add_trace(*parts[0].trace, *parts[r].trace);
  }
  return std::move(parts[0]);
}

Result<RolloutResult> rollout_ranks(const Model& model, Device& device, ThreadPool& pool, int ranks,
                                    const std::vector<Sequence>& prompts,
                                    const RolloutOptions& options) {
  if (ranks == 1) {
    Parallel alone;
    return rollout(model, device, pool, alone, prompts, options);
  }
  SB_TRY(plan, plan_rank(model.arch, 0, ranks));
  SB_ASSERT(plan.size == ranks, "a plan of another size");
  std::mutex polling;
  SB_TRY(parts, on_ranks<RolloutResult>(ranks, [&](int rank, ThreadPool& own, Parallel& parallel) {
           RolloutOptions mine = options;
           mine.interrupted = one_at_a_time(polling, options.interrupted);
           if (rank != 0) mine.progress = nullptr;
           return rollout(model, device, own, parallel, prompts, mine);
         }));
  for (int r = 1; r < ranks; ++r) {
    bool same = same_bits(parts[0].logprobs, parts[r].logprobs);
    for (size_t s = 0; same && s < parts[0].sequences.size(); ++s) {
      same = parts[0].sequences[s].tokens == parts[r].sequences[s].tokens;
    }
    if (!same) return disagree(r);
  }
  return std::move(parts[0]);
}

}  // namespace sb
