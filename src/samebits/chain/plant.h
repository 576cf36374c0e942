// Planted faults that no operator commits: they lie in the cache's tables and slots, or in which
// row a result is reported for.
#pragma once

#include <vector>

#include "samebits/chain/batch.h"
#include "samebits/chain/fault.h"
#include "samebits/chain/kv_cache.h"
#include "samebits/chain/sequence.h"
#include "samebits/chain/trace.h"

namespace sb {

// Applied to the sequence added last to the batch, tokens [begin, begin + count) of its row: two
// pages exchanged in its table, or a slot that is not written. first_decoded: position of the
// row's first token that decodes by itself.
void plant_cache_faults(HostBatch& batch, const std::vector<Fault>& faults, ScheduleKind schedule,
                        const std::array<int, 2>& page_size, int64_t begin, int64_t count,
                        int64_t first_decoded);

// Cache options under which the faults show as wrong numbers and not as a crash.
void adapt_cache(KvCacheOptions& cache, const std::vector<Fault>& faults, ScheduleKind schedule);

// Row shift: every log-probability of a sequence becomes its successor's, the last one stays. The
// trace (may be null) reports what the run reports: its column `logp` moves with them.
void plant_row_shift(Logprobs& logprobs, Trace* trace, const std::vector<Fault>& faults);

}  // namespace sb
