// Trace files, X.sbt, version trace/1:
//
//   samebits trace/1 ⏎
//   one line of JSON: run header, ids, token digests, sizes, boundaries (padded to 8 bytes)
//   rows            int32 seq, int32 pos            per row, ascending
//   scored          int32 index into rows           padded to 8 bytes
//   per boundary    u64 digest per row (or scored row), then one byte per row: 1 = holds inf or
//   NaN,
//                   padded to 8 bytes; behind that, if the column says "values", width elements of
//                   dtype per row, padded to 8 bytes
//   sha256 HEX ⏎    over all bytes before this line
//
// All little endian. Written front to back without seeking; read by mmap, and columns are spans
// into the map, so a large trace costs no memory. Every truncation and every changed byte is
// kBrokenData: a damaged trace must never look like drift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/file.h"
#include "samebits/base/result.h"
#include "samebits/chain/trace.h"
#include "samebits/gate/run_header.h"

namespace sb {

inline constexpr std::string_view kTraceMagic = "samebits trace/1\n";

struct TraceColumnView {
  Boundary boundary;
  std::string dtype;  // "bf16" or "f32"
  int64_t width = 0;  // elements per row
  bool scored = false;
  std::span<const uint64_t> digests;
  std::span<const uint8_t> non_finite;
  std::span<const std::byte> values;  // [rows][width] of dtype; empty: digests alone

  int64_t element_bytes() const { return dtype == "f32" ? 4 : 2; }
  // Bits of one element; only where there are values.
  uint32_t bits_at(size_t row, size_t column) const;
};

// What comparisons read: a trace in memory or in a file, with what the run was.
struct TraceView {
  RunHeader header;
  std::vector<std::string> ids;     // per sequence, unique
  std::vector<std::string> tokens;  // token_digest per sequence
  std::span<const TraceRow> rows;   // ascending by (seq, pos)
  std::span<const int32_t> scored;  // ascending indices into rows
  std::vector<TraceColumnView> columns;
};

// Points into `trace`, which must outlive the view. tokens[i] is token_digest of sequence i.
TraceView view_of(const Trace& trace, const RunHeader& header, std::vector<std::string> tokens);

// First broken rule of a view (sizes, order, names, bounds), as reader and writer check it.
Status check_trace(const TraceView& view, const std::string& where);

// A file kept open: the view's spans point into it.
struct TraceFile {
  MappedFile map;
  std::shared_ptr<const std::vector<uint64_t>> copy;  // set instead of map when parsed from memory
  TraceView view;
};

Status write_trace_file(const std::string& path, bool force, const TraceView& view);
Result<TraceFile> read_trace_file(const std::string& path);
// From bytes in memory, which are copied; for standard input and tests.
Result<TraceFile> parse_trace_file(std::string_view bytes, const std::string& where);

}  // namespace sb
