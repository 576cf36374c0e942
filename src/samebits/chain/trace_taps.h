// Taps that fill a Trace: digests are computed by an operator on the device, only 8 bytes a row
// come back. Rows land at their (sequence, position), whatever step and batch row they came from;
// ranks' shards add up because digests are sums.
#pragma once

#include <vector>

#include "samebits/chain/sequence.h"
#include "samebits/chain/trace.h"
#include "samebits/ops/ctx.h"

namespace sb {

// An empty trace of these sequences: all columns there, all digests 0.
Trace make_trace(const Architecture& arch, const std::vector<Sequence>& sequences);
// Bytes of one row's values at a boundary.
int64_t value_row_bytes(const Architecture& arch, Boundary b);
// Adds a rank's digests to rank 0's.
void add_trace(Trace& into, const Trace& part);

class TraceTaps : public Taps {
 public:
  // values: where those of chosen boundaries go; ranks share the memory and write their own
  // columns.
  TraceTaps(const Architecture& arch, const std::vector<Sequence>& sequences,
            const std::vector<TraceValues>& values = {});

  // Before each step: (sequence, position) of every batch row (seq = −1: padding) and the batch's
  // head rows.
  void begin_step(std::vector<TraceRow> rows, std::vector<int32_t> head_rows);

  bool wants(Boundary b) const override;
  Status emit(Ctx& ctx, Boundary b, const View& value, int64_t row_begin, int64_t column_begin,
              int64_t width) override;
  Trace take() { return std::move(trace_); }

 private:
  int num_layers_;
  Trace trace_;
  std::vector<int> column_of_;         // boundary order → column, −1: none
  std::vector<int64_t> first_row_;     // per sequence, into trace_.rows
  std::vector<int32_t> scored_index_;  // per trace row, −1: not scored
  std::vector<TraceRow> rows_;
  std::vector<int32_t> head_rows_;
};

}  // namespace sb
