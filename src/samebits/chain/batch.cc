#include "samebits/chain/batch.h"

#include <algorithm>

namespace sb {
namespace {

tl::unexpected<Refusal> bad(const std::string& why) {
  return refuse(Code::kRefused, "run a batch", why);
}

Status check_sequence(const HostBatch& b, int64_t s) {
  const int64_t begin = b.query_start[s], end = b.query_start[s + 1];
  const std::string name = "sequence " + std::to_string(s);
  if (begin < 0 || end < begin || end > b.rows()) return bad(name + " has rows outside the batch");
  int64_t live = 0;
  while (begin + live < end && b.seq[begin + live] == s) ++live;
  const int64_t first = b.seq_len[s] - live;
  if (first < 0) return bad(name + " has more rows than keys");
  for (int64_t i = begin; i < end; ++i) {
    if (i - begin >= live) {
      if (b.seq[i] != -1) return bad(name + " shares its rows with another sequence");
    } else if (b.pos[i] != first + (i - begin)) {
      return bad(name + " has position " + std::to_string(b.pos[i]) + " where " +
                 std::to_string(first + (i - begin)) + " has to follow");
    }
  }
  return {};
}

}  // namespace

Status check_batch(const HostBatch& b, const Architecture& arch) {
  const int64_t rows = b.rows(), sequences = b.sequences();
  if (!b.image_block.empty() || !b.embedding_row.empty()) {
    return refuse(Code::kRefused, "run rows with images", "the vision chain is not built yet",
                  "text rows");
  }
  if (static_cast<int64_t>(b.pos.size()) != rows || static_cast<int64_t>(b.seq.size()) != rows ||
      static_cast<int64_t>(b.query_start.size()) != sequences + 1) {
    return bad("its arrays have different lengths");
  }
  if (b.query_start.front() != 0 || b.query_start.back() != rows) {
    return bad("some of its rows belong to no sequence's range");
  }
  for (int64_t t = 0; t < rows; ++t) {
    if (b.seq[t] < 0) continue;
    if (b.seq[t] >= sequences) return bad("row " + std::to_string(t) + " names no sequence");
    if (b.token[t] < 0 || b.token[t] >= arch.vocab) {
      return bad("row " + std::to_string(t) + " has token " + std::to_string(b.token[t]) +
                 ", the vocabulary ends at " + std::to_string(arch.vocab - 1));
    }
    if (b.pos[t] < 0 || b.pos[t] >= arch.max_position) {
      return bad("row " + std::to_string(t) + " has position " + std::to_string(b.pos[t]) +
                 ", the model ends at " + std::to_string(arch.max_position - 1));
    }
  }
  for (int64_t s = 0; s < sequences; ++s) SB_DO(check_sequence(b, s));
  if (b.head_rows.size() != b.target.size()) return bad("head rows and targets do not pair");
  for (size_t r = 0; r < b.head_rows.size(); ++r) {
    const int32_t row = b.head_rows[r];
    if (row < 0 || row >= rows || b.seq[row] < 0) return bad("a head row is not a live row");
    if (b.target[r] >= arch.vocab) return bad("a target lies outside the vocabulary");
  }
  if (!b.paged()) {
    if (!b.slot[0].empty() || !b.slot[1].empty() || !b.table[1].empty()) {
      return bad("it has cache slots or tables of one group only");
    }
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t begin = b.query_start[s];
      if (begin < b.query_start[s + 1] && b.seq[begin] == s && b.pos[begin] != 0) {
        return bad("packed rows must start at position 0");
      }
    }
    return {};
  }
  for (int g = 0; g < 2; ++g) {
    if (static_cast<int64_t>(b.slot[g].size()) != rows ||
        static_cast<int64_t>(b.table[g].size()) != sequences * b.table_columns[g]) {
      return bad("slots or block tables have the wrong size");
    }
    std::vector<int32_t> used;
    for (int64_t t = 0; t < rows; ++t) {
      if (b.slot[g][t] < 0) continue;
      if (b.seq[t] < 0) return bad("a padding row has a cache slot");
      used.push_back(b.slot[g][t]);
    }
    std::sort(used.begin(), used.end());
    if (std::adjacent_find(used.begin(), used.end()) != used.end()) {
      return bad("two rows write one cache slot");
    }
  }
  return {};
}

Batch::~Batch() {
  for (auto& b : buffers_) {
    if (b.ptr) device_.release(b.ptr, b.bytes);
  }
}

Result<View> Batch::upload(Buffer& buffer, const std::vector<int32_t>& values,
                           std::initializer_list<int64_t> shape) {
  const size_t bytes = values.size() * sizeof(int32_t);
  if (bytes > buffer.bytes || !buffer.ptr) {
    if (buffer.ptr) device_.release(buffer.ptr, buffer.bytes);
    buffer = {};
    const size_t capacity = std::max<size_t>(256, bytes + bytes / 2);
    SB_TRY(ptr, device_.alloc(capacity));
    buffer = {ptr, capacity};
  }
  device_.copy_in(buffer.ptr, values.data(), bytes);
  return make_view(buffer.ptr, Dtype::kI32, shape, device_.id());
}

Status Batch::set(const HostBatch& b) {
  rows = b.rows();
  sequences = b.sequences();
  paged = b.paged();
  int next = 0;
  auto put = [&](View& view, const std::vector<int32_t>& values,
                 std::initializer_list<int64_t> shape) -> Status {
    SB_TRY(v, upload(buffers_[next++], values, shape));
    view = v;
    return {};
  };
  SB_DO(put(token, b.token, {rows}));
  SB_DO(put(pos, b.pos, {rows}));
  SB_DO(put(seq, b.seq, {rows}));
  SB_DO(put(query_start, b.query_start, {sequences + 1}));
  SB_DO(put(seq_len, b.seq_len, {sequences}));
  const int64_t heads = static_cast<int64_t>(b.head_rows.size());
  SB_DO(put(head_rows, b.head_rows, {heads}));
  SB_DO(put(target, b.target, {heads}));
  for (int g = 0; g < 2; ++g) {
    if (paged) {
      SB_DO(put(slot[g], b.slot[g], {rows}));
      SB_DO(put(table[g], b.table[g], {sequences, b.table_columns[g]}));
    } else {
      slot[g] = {};
      table[g] = query_start;
      table[g].shape[0] = sequences;
    }
  }
  return {};
}

}  // namespace sb
