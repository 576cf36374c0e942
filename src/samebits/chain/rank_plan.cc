#include "samebits/chain/rank_plan.h"

#include "samebits/contract/head_shape.h"
#include "samebits/ops/ops.h"

namespace sb {
namespace {

// Ranks that share a head are neighbours, so a rank's query heads read its own KV heads.
KvShare share(int kv_heads, int rank, int size) {
  if (kv_heads >= size) return {rank * (kv_heads / size), kv_heads / size, true};
  const int copies = size / kv_heads;
  return {rank / copies, 1, rank % copies == 0};
}

}  // namespace

Result<RankPlan> plan_rank(const Architecture& arch, int rank, int size) {
  const std::string asked = "run with --tp " + std::to_string(size);
  if (size != 1 && size != 2 && size != 4 && size != 8) {
    return refuse(Code::kRefused, asked, "sums are declared for 1, 2, 4 and 8 ranks",
                  "--tp 1, 2, 4 or 8");
  }
  Refusal r{Code::kRefused, asked, {}, "a smaller --tp"};
  auto need = [&](bool ok, const std::string& why) {
    if (!ok) r.reasons.push_back(why);
  };
  auto divides = [&](int64_t n, const char* what) {
    need(n % size == 0,
         std::to_string(n) + " " + what + " do not divide by " + std::to_string(size));
  };
  divides(arch.num_heads, "query heads");
  for (const auto type : {LayerType::kSliding, LayerType::kGlobal}) {
    const auto& a = arch.attention(type);
    need(a.num_kv_heads % size == 0 || size % a.num_kv_heads == 0,
         std::to_string(a.num_kv_heads) + " " + layer_type_name(type) +
             " KV heads neither divide by " + std::to_string(size) + " nor replicate evenly");
    const int64_t k = int64_t{arch.num_heads} * a.head_dim;
    need(size == 1 || ops::gemm_leaves(k) == 8, std::string("o of ") + layer_type_name(type) +
                                                    " layers has K = " + std::to_string(k) +
                                                    ", not a multiple of 128");
  }
  need(size == 1 || ops::gemm_leaves(arch.intermediate) == 8,
       "down has K = " + std::to_string(arch.intermediate) + ", not a multiple of 128");
  if (!r.reasons.empty()) return tl::unexpected(std::move(r));

  RankPlan p;
  p.rank = rank;
  p.size = size;
  p.heads = arch.num_heads / size;
  p.head_begin = rank * p.heads;
  p.sliding = share(arch.sliding.num_kv_heads, rank, size);
  p.global = share(arch.global.num_kv_heads, rank, size);
  p.inter = arch.intermediate / size;
  p.inter_begin = rank * p.inter;
  p.shards = kHeadRule.shards / size;
  p.shard_begin = rank * p.shards;
  const ColumnRange columns = shard_columns(arch.vocab, p.shard_begin, p.shards);
  p.vocab_begin = columns.begin;
  p.vocab_rows = columns.end - columns.begin;
  return p;
}

}  // namespace sb
