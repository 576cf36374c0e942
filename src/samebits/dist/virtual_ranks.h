// Virtual ranks: N tensor-parallel ranks as threads of one process, each with its own arena, cache
// and shard of the sums, through the same partial → combine → finish seam as real ones.
#pragma once

#include "samebits/chain/score.h"

namespace sb {

// score_rows on `ranks` ranks (1: in the calling thread, with `threads` threads over rows). Every
// rank must come to the same log-probabilities, or the result is a Refusal (kDrift). Digests of the
// ranks' shards are added into one trace; records are rank 0's.
Result<RunResult> score_rows_ranks(const Model& model, Device& device, ThreadPool& pool, int ranks,
                                   const std::vector<Sequence>& sequences,
                                   const RunOptions& options);

// rollout on `ranks` ranks; every rank must draw the same tokens.
Result<RolloutResult> rollout_ranks(const Model& model, Device& device, ThreadPool& pool, int ranks,
                                    const std::vector<Sequence>& prompts,
                                    const RolloutOptions& options);

}  // namespace sb
