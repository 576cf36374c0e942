#include "samebits/chain/step_builder.h"

namespace sb {

void StepBuilder::add_rows(size_t seq, int64_t begin, int64_t count, int padding) {
  const Sequence& s = sequences_[seq];
  const int32_t index = static_cast<int32_t>(batch_.sequences());
  if (batch_.query_start.empty()) batch_.query_start.push_back(0);
  for (int64_t p = begin; p < begin + count; ++p) {
    batch_.add_row(s.tokens[p], static_cast<int32_t>(p), index);
    rows_.push_back({static_cast<int32_t>(seq), static_cast<int32_t>(p)});
  }
  for (int i = 0; i < padding; ++i) {
    batch_.add_row(-1, -1, -1);
    rows_.push_back({-1, -1});
  }
  batch_.query_start.push_back(static_cast<int32_t>(batch_.rows()));
  batch_.seq_len.push_back(static_cast<int32_t>(begin + count));
  live_ += count;
}

void StepBuilder::add(size_t seq, int64_t begin, int64_t count, int padding) {
  const Sequence& s = sequences_[seq];
  const int32_t first_row = static_cast<int32_t>(batch_.rows());
  add_rows(seq, begin, count, padding);
  for (int64_t p = begin; p < begin + count; ++p) {
    if (p < s.prompt_len - 1 || p + 1 >= s.size()) continue;
    batch_.head_rows.push_back(first_row + static_cast<int32_t>(p - begin));
    batch_.target.push_back(s.tokens[p + 1]);
    head_.push_back({static_cast<int32_t>(seq), static_cast<int32_t>(p)});
  }
}

void StepBuilder::add_for_draw(size_t seq, int64_t begin, int64_t count) {
  add_rows(seq, begin, count, 0);
  batch_.head_rows.push_back(static_cast<int32_t>(batch_.rows() - 1));
  batch_.target.push_back(-1);
  head_.push_back({static_cast<int32_t>(seq), static_cast<int32_t>(begin + count - 1)});
}

void StepBuilder::describe(const KvCache& cache, KvCache::Handle h, int64_t count) {
  cache.describe(h, count, batch_);
  for (auto& slots : batch_.slot) slots.resize(static_cast<size_t>(batch_.rows()), -1);
}

}  // namespace sb
