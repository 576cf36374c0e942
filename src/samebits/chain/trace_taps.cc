#include "samebits/chain/trace_taps.h"

#include "samebits/ops/ops.h"

namespace sb {

Trace make_trace(const Architecture& arch, const std::vector<Sequence>& sequences) {
  Trace trace;
  for (size_t s = 0; s < sequences.size(); ++s) {
    trace.ids.push_back(sequences[s].id);
    for (int64_t p = 0; p < sequences[s].size(); ++p) {
      if (p >= sequences[s].prompt_len - 1 && p + 1 < sequences[s].size()) {
        trace.scored.push_back(static_cast<int32_t>(trace.rows.size()));
      }
      trace.rows.push_back({static_cast<int32_t>(s), static_cast<int32_t>(p)});
    }
  }
  for (const Boundary b : all_boundaries(arch, /*with_acc=*/true)) {
    TraceColumn c;
    c.boundary = b;
    c.scored = is_per_scored_row(b.tap);
    const size_t rows = c.scored ? trace.scored.size() : trace.rows.size();
    c.digests.assign(rows, 0);
    c.non_finite.assign(rows, 0);
    trace.columns.push_back(std::move(c));
  }
  return trace;
}

int64_t value_row_bytes(const Architecture& arch, Boundary b) {
  return boundary_width(arch, b) * dtype_bytes(is_fp32(b.tap) ? Dtype::kF32 : Dtype::kBf16);
}

void add_trace(Trace& into, const Trace& part) {
  for (size_t i = 0; i < into.columns.size(); ++i) {
    TraceColumn& a = into.columns[i];
    const TraceColumn& b = part.columns[i];
    if (a.width == 0) {
      a.dtype = b.dtype;
      a.width = b.width;
    }
    for (size_t r = 0; r < a.digests.size(); ++r) {
      a.digests[r] += b.digests[r];
      a.non_finite[r] |= b.non_finite[r];
    }
  }
}

TraceTaps::TraceTaps(const Architecture& arch, const std::vector<Sequence>& sequences,
                     const std::vector<TraceValues>& values)
    : num_layers_(arch.num_layers()), trace_(make_trace(arch, sequences)) {
  for (size_t i = 0; i < trace_.columns.size(); ++i) {
    const size_t order = boundary_order(trace_.columns[i].boundary, num_layers_);
    if (column_of_.size() <= order) column_of_.resize(order + 1, -1);
    column_of_[order] = static_cast<int>(i);
  }
  for (const TraceValues& v : values) {
    TraceColumn& c = trace_.columns[column_of_[boundary_order(v.boundary, num_layers_)]];
    SB_ASSERT(c.boundary == v.boundary &&
                  v.memory.size() == c.digests.size() * value_row_bytes(arch, v.boundary),
              "memory for the values of another boundary or run");
    c.values = v.memory;
  }
  int64_t row = 0;
  for (const auto& s : sequences) {
    first_row_.push_back(row);
    row += s.size();
  }
  scored_index_.assign(trace_.rows.size(), -1);
  for (size_t i = 0; i < trace_.scored.size(); ++i) {
    scored_index_[trace_.scored[i]] = static_cast<int32_t>(i);
  }
}

void TraceTaps::begin_step(std::vector<TraceRow> rows, std::vector<int32_t> head_rows) {
  rows_ = std::move(rows);
  head_rows_ = std::move(head_rows);
}

bool TraceTaps::wants(Boundary b) const {
  const size_t order = boundary_order(b, num_layers_);
  return order < column_of_.size() && column_of_[order] >= 0;
}

Status TraceTaps::emit(Ctx& ctx, Boundary b, const View& value, int64_t row_begin,
                       int64_t column_begin, int64_t width) {
  ArenaScope scope(*ctx.arena);
  const int64_t rows = value.shape[0];
  SB_TRY(digest, ctx.arena->take(Dtype::kU64, {rows}));
  SB_TRY(bad, ctx.arena->take(Dtype::kU8, {rows}));
  SB_DO(ops::digest(ctx, {b, {}}, {value, column_begin, digest, bad}));
  std::vector<uint64_t> host(static_cast<size_t>(rows));
  std::vector<uint8_t> host_bad(static_cast<size_t>(rows));
  ctx.exec.device->copy_out(host.data(), digest.ptr, host.size() * sizeof(uint64_t));
  ctx.exec.device->copy_out(host_bad.data(), bad.ptr, host_bad.size());

  TraceColumn& column = trace_.columns[column_of_[boundary_order(b, num_layers_)]];
  column.dtype = dtype_name(value.dtype);
  column.width = width;
  const int64_t element = dtype_bytes(value.dtype), columns = value.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t batch_row = column.scored ? head_rows_[row_begin + r] : row_begin + r;
    const TraceRow& at = rows_[batch_row];
    if (at.seq < 0) continue;
    const int64_t row = first_row_[at.seq] + at.pos;
    const int64_t index = column.scored ? scored_index_[row] : row;
    if (index < 0) continue;
    column.digests[index] += host[r];
    column.non_finite[index] |= host_bad[r];
    if (column.values.empty()) continue;
    const auto to = column.values.subspan((index * width + column_begin) * element);
    SB_ASSERT(static_cast<int64_t>(to.size()) >= columns * element, "values past their memory");
    ctx.exec.device->copy_out(to.data(), rows_of(value, r, 1).ptr, columns * element);
  }
  return {};
}

}  // namespace sb
