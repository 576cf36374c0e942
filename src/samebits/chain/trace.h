// A trace in memory: per-row digests of every boundary of a run, in causal order. Rows are ordered
// by (sequence, position) whatever the schedule, so traces of two schedules have equal columns
// exactly when the runs have equal bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "samebits/contract/boundary.h"

namespace sb {

struct TraceRow {
  int32_t seq = 0;  // index of the token row in input order
  int32_t pos = 0;
};

struct TraceColumn {
  Boundary boundary;
  std::string dtype;                // "bf16" or "f32"
  int64_t width = 0;                // elements per row
  bool scored = false;              // true: one digest per scored row, else per row
  std::vector<uint64_t> digests;    // digest_element sums over the row, index from 0
  std::vector<uint8_t> non_finite;  // 1 where the row holds an inf or NaN
  // [rows][width] elements of dtype, where they were asked for; memory of whoever asked.
  std::span<std::byte> values;
};

// Where the values of a boundary shall go, all rows of the run; zeros at first.
struct TraceValues {
  Boundary boundary;
  std::span<std::byte> memory;
};

struct Trace {
  std::vector<std::string> ids;  // token row ids in input order
  std::vector<TraceRow> rows;
  std::vector<int32_t> scored;  // indices into rows: those with a selected log-probability
  std::vector<TraceColumn> columns;
};

}  // namespace sb
