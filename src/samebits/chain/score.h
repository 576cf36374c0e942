// score_rows: token rows through one schedule: the log-probability of every scored token, and on
// request a trace. rollout: paged decode with the sampler. Both drive the same Session.
#pragma once

#include <functional>

#include "samebits/chain/session.h"

namespace sb {

struct RunOptions {
  SessionOptions session;
  Schedule schedule;
  bool packed = true;    // train: all rows in one step; false: each sequence alone
  int padding_rows = 0;  // after every sequence of a step
  std::vector<uint16_t> pad_fill;
  int64_t prefix = 0;  // paged: the first tokens of each row come from a cached prefix
  int join_every = 0;  // paged: sequence i joins at step i · join_every
  bool trace = false;
  std::vector<TraceValues> trace_values;  // boundaries whose values a trace keeps, too
  Taps* taps = nullptr;  // sees every step's boundaries, one rank, when there is no trace
  std::function<void(int64_t done, int64_t total)> progress;  // tokens; may be empty
  std::function<bool()> interrupted;                          // polled between steps; may be empty
};

struct RunResult {
  Logprobs logprobs;
  std::optional<Trace> trace;
  std::vector<Record> records;
  int64_t steps = 0, tokens = 0;
  size_t arena_bytes = 0;
};

Result<RunResult> score_rows(const Model& model, Device& device, ThreadPool& pool,
                             Parallel& parallel, const std::vector<Sequence>& sequences,
                             const RunOptions& options);

// Every row has an id of its own: noise, pages and reports go by it. kBrokenData names a second
// one.
Status check_ids(const std::vector<Sequence>& sequences);

struct RolloutOptions {
  SessionOptions session;
  int64_t max_new = 16;
  bool greedy = false;
  uint64_t seed = 0;
  std::vector<int32_t> stop;  // ids that end a row; the id itself is kept
  int join_every = 0;
  std::function<void(int64_t done, int64_t total)> progress;
  std::function<bool()> interrupted;
};

struct RolloutResult {
  std::vector<Sequence> sequences;  // prompts with what was drawn
  Logprobs logprobs;
  std::vector<Record> records;
  int64_t steps = 0, tokens = 0;
  size_t arena_bytes = 0;
};

// prompts: tokens are the prompt; prompt_len is set to their number.
Result<RolloutResult> rollout(const Model& model, Device& device, ThreadPool& pool,
                              Parallel& parallel, const std::vector<Sequence>& prompts,
                              const RolloutOptions& options);

// Pages a run needs when all sequences are in the cache at once, per group, and a few to spare.
std::array<int64_t, 2> pages_needed(const KvCacheOptions& cache,
                                    const std::vector<int64_t>& lengths);

}  // namespace sb
