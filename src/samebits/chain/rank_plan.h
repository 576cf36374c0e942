// What one tensor-parallel rank owns: whole query heads, whole KV heads (replicated where there are
// fewer than ranks), a contiguous part of the MLP width, vocabulary shards, and with them the
// leaves of every sum that crosses ranks. Size 1 owns all.
#pragma once

#include "samebits/model/architecture.h"

namespace sb {

struct KvShare {
  int begin = 0, heads = 0;
  bool primary = true;  // of several ranks that hold the same head, the one that reports it
};

struct RankPlan {
  int rank = 0, size = 1;
  int head_begin = 0, heads = 0;
  KvShare sliding, global;
  int64_t inter_begin = 0, inter = 0;
  int shard_begin = 0, shards = 8;
  int64_t vocab_begin = 0, vocab_rows = 0;
  const KvShare& kv(LayerType t) const { return t == LayerType::kSliding ? sliding : global; }
};

// Refuses sizes other than 1, 2, 4, 8 and models whose heads or leaves do not divide.
Result<RankPlan> plan_rank(const Architecture& arch, int rank, int size);

}  // namespace sb
