#include "samebits/chain/plant.h"

#include <algorithm>

namespace sb {

void plant_cache_faults(HostBatch& batch, const std::vector<Fault>& faults, ScheduleKind schedule,
                        const std::array<int, 2>& page_size, int64_t begin, int64_t count,
                        int64_t first_decoded) {
  for (int g = 0; g < 2; ++g) {
    const int columns = batch.table_columns[g];
    int32_t* row = batch.table[g].data() + batch.table[g].size() - columns;
    // Exchanges the two newest pages that earlier steps have filled; inside a window they still
    // are.
    const int64_t full = begin / page_size[g];
    if (has_fault(faults, schedule, FaultKind::kSwappedPage) && full >= 2 &&
        row[full - 2] != kPoisonPage) {
      std::swap(row[full - 2], row[full - 1]);
    }
    // The first decoded token of a row is not written.
    if (has_fault(faults, schedule, FaultKind::kStaleSlot) && count == 1 &&
        begin == first_decoded) {
      batch.slot[g].back() = -1;
    }
  }
}

// Stale entries are finite (an earlier request's), and a window that is one key too wide reads
// pages that would have been given back.
void adapt_cache(KvCacheOptions& cache, const std::vector<Fault>& faults, ScheduleKind schedule) {
  if (has_fault(faults, schedule, FaultKind::kStaleSlot)) cache.fill = 0x3c;
  if (has_fault(faults, schedule, FaultKind::kWindowPlusOne)) cache.free_window = false;
}

void plant_row_shift(Logprobs& logprobs, Trace* trace, const std::vector<Fault>& faults) {
  const bool planted = std::any_of(faults.begin(), faults.end(),
                                   [](const Fault& f) { return f.kind == FaultKind::kRowShift; });
  if (!planted) return;
  for (auto& row : logprobs) {
    if (!row.empty()) std::copy(row.begin() + 1, row.end(), row.begin());
  }
  if (!trace) return;
  for (TraceColumn& c : trace->columns) {
    if (c.boundary.tap != Tap::kLogp) continue;
    for (size_t i = 0; i + 1 < trace->scored.size(); ++i) {
      const auto seq_of = [&](size_t k) { return trace->rows[trace->scored[k]].seq; };
      if (seq_of(i) != seq_of(i + 1)) continue;
      c.digests[i] = c.digests[i + 1];
      c.non_finite[i] = c.non_finite[i + 1];
    }
  }
}

}  // namespace sb
