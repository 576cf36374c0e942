// StepBuilder: assembles one step's HostBatch from sequences, and remembers which (sequence,
// position) each row and each head row is.
#pragma once

#include <vector>

#include "samebits/chain/batch.h"
#include "samebits/chain/kv_cache.h"
#include "samebits/chain/sequence.h"
#include "samebits/chain/trace.h"

namespace sb {

class StepBuilder {
 public:
  explicit StepBuilder(const std::vector<Sequence>& sequences) : sequences_(sequences) {}

  // Tokens [begin, begin + count) of sequence `seq`, then `padding` dead rows. Rows whose next
  // token is scored become head rows.
  void add(size_t seq, int64_t begin, int64_t count, int padding);
  // As add, for a row that decodes: its one head row has no target yet.
  void add_for_draw(size_t seq, int64_t begin, int64_t count);
  // Cache slots and table row of the sequence just added.
  void describe(const KvCache& cache, KvCache::Handle h, int64_t count);
  void set_pad_fill(const std::vector<uint16_t>& fill) { batch_.pad_fill = fill; }

  HostBatch& batch() { return batch_; }
  const std::vector<TraceRow>& head_rows() const { return head_; }
  const std::vector<TraceRow>& trace_rows() const { return rows_; }
  int64_t live_rows() const { return live_; }
  bool empty() const { return rows_.empty(); }

 private:
  void add_rows(size_t seq, int64_t begin, int64_t count, int padding);
  const std::vector<Sequence>& sequences_;
  HostBatch batch_;
  std::vector<TraceRow> rows_, head_;
  int64_t live_ = 0;
};

}  // namespace sb
