// KvView: where one layer's keys and values are, for any engine's layout. Strides count elements.
// Paged: key j of sequence s lies in page block_table[s][j / page_size] at token j mod page_size.
// Linear (packed training): at token base[s] + j, base being the sequence's first row.
#pragma once

#include <cstdint>

#include "samebits/base/view.h"

namespace sb {

struct KvView {
  enum Kind : uint8_t { kPaged, kLinear } kind = kLinear;
  bf16* k = nullptr;
  bf16* v = nullptr;
  int64_t page_stride = 0, token_stride = 0, head_stride = 0;
  int page_size = 0;      // tokens; paged only
  int64_t num_pages = 0;  // paged only; a table entry outside is never read for a visible key
  View table;             // paged: i32 [sequences, pages]; linear: i32 [sequences] = base
  uint64_t epoch = 0;     // weights the entries were made with
};

// Element offset of head 0 of key j, given the table row of its sequence. Device-safe.
SB_HD inline int64_t kv_offset(const KvView& kv, const int32_t* table_row, int64_t j) {
  if (kv.kind == KvView::kLinear) return (table_row[0] + j) * kv.token_stride;
  return table_row[j / kv.page_size] * kv.page_stride + (j % kv.page_size) * kv.token_stride;
}

// Whether key j has memory at all; linear keys are the batch's own rows.
SB_HD inline bool kv_page_exists(const KvView& kv, const int32_t* table_row, int64_t j) {
  if (kv.kind == KvView::kLinear) return true;
  const int64_t i = j / kv.page_size;
  return i < kv.table.shape[1] && table_row[i] >= 0 && table_row[i] < kv.num_pages;
}

}  // namespace sb
