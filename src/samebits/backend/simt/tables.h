// Which kernel serves which operator, for every backend that runs the kernels of this folder. A
// backend (see launch.h) takes its entries from table<Backend>(const Args*) for each operator.
#pragma once

#include <array>
#include <string>

#include "samebits/backend/implementation.h"
#include "samebits/backend/moves.h"
#include "samebits/backend/simt/attention.h"
#include "samebits/backend/simt/elementwise.h"
#include "samebits/backend/simt/gemm.h"
#include "samebits/backend/simt/head.h"
#include "samebits/backend/simt/norm.h"
#include "samebits/backend/simt/rows.h"

namespace sb::simt {

template <class BK, class K>
Status run(const Exec& exec, const typename K::Args& a) {
  return BK::template launch<K>(exec, a, K::items(a));
}

// Few rows take a block of 16, more take blocks of 64; bits do not depend on it.
template <class BK, template <GemmRule, int> class K, GemmRule C>
Status run_by_rows(const Exec& exec, const typename K<C, 1>::Args& a) {
  return a.x.shape[0] <= 16 ? run<BK, K<C, 1>>(exec, a) : run<BK, K<C, 4>>(exec, a);
}

template <class BK, AttentionRule C>
Status run_attention(const Exec& exec, const AttentionArgs& a) {
  const int64_t width = a.q.shape[2], group = a.q.shape[1] / a.num_kv_heads;
  if (group > kMaxGroup || width > 512) {
    return refuse(Code::kRefused,
                  "attention of head dim " + std::to_string(width) + " with " +
                      std::to_string(group) + " query heads a KV head",
                  std::string(BK::kName) +
                      " kernels hold head dims up to 512 and groups of at most 16 query heads",
                  "--backend cpu, which takes any shape");
  }
  if (width <= 64) return run<BK, Attention<C, 64>>(exec, a);
  if (width <= 256) return run<BK, Attention<C, 256>>(exec, a);
  return run<BK, Attention<C, 512>>(exec, a);
}

template <class BK, HeadRule C>
Status run_head(const Exec& exec, const HeadArgs& a) {
  if (head_shape(a.vocab).tiles_per_shard > HeadShards<C>::kMost) {
    return refuse(Code::kRefused, "a head over " + std::to_string(a.vocab) + " ids",
                  std::string(BK::kName) + " kernels hold 1024 tiles of 256 ids a shard",
                  "a vocabulary of at most 2,097,152 ids");
  }
  SB_DO((run<BK, HeadTiles<C>>(exec, a)));
  return run<BK, HeadShards<C>>(exec, a);
}

// One table entry; `id` lives as long as the program.
template <class BK, class Args>
Implementation<Args> entry(const char* id, ContractId contract, const char* schedule,
                           const char* split, Status (*run_it)(const Exec&, const Args&)) {
  return {id, contract, BK::kProfiles, BK::kDevice, BK::kArch, schedule, split, run_it};
}

// clang-format off
#define SB_SIMT_TABLE(ArgsType, ...)                                                      \
  template <class BK>                                                                     \
  std::span<const Implementation<ArgsType>> table(const ArgsType*) {                      \
    static const auto entries = std::to_array<Implementation<ArgsType>>({__VA_ARGS__});   \
    return entries;                                                                       \
  }
#define SB_SIMT_ID(name) ([]() -> const char* {                                           \
    static const std::string id = std::string(BK::kName) + "." name ".v1";                \
    return id.c_str(); }())

SB_SIMT_TABLE(EmbedArgs,
  entry<BK, EmbedArgs>(SB_SIMT_ID("embed.row"), ContractId::kEmbed, "row", "none", run<BK, Embed<kEmbedRule>>))
SB_SIMT_TABLE(RmsNormArgs,
  entry<BK, RmsNormArgs>(SB_SIMT_ID("rmsnorm.head"), ContractId::kRmsNorm, "row x head", "none", run<BK, RmsNorm<kRmsNormRule>>))
SB_SIMT_TABLE(GemmArgs,
  entry<BK, GemmArgs>(SB_SIMT_ID("gemm.tile64"), ContractId::kGemm, "16 or 64 rows x 64 columns", "none", run_by_rows<BK, Gemm, kGemmRule>))
SB_SIMT_TABLE(GemmPartialArgs,
  entry<BK, GemmPartialArgs>(SB_SIMT_ID("gemm_partial.tile64"), ContractId::kGemmTree, "16 or 64 rows x 64 columns", "leaves", run_by_rows<BK, GemmPartial, kGemmTreeRule>))
SB_SIMT_TABLE(GemmFinishArgs,
  entry<BK, GemmFinishArgs>(SB_SIMT_ID("gemm_finish.row"), ContractId::kGemmTree, "row", "ranks", run<BK, GemmFinish<kGemmTreeRule>>))
SB_SIMT_TABLE(RopeArgs,
  entry<BK, RopeArgs>(SB_SIMT_ID("rope.row"), ContractId::kRope, "row", "none", run<BK, Rope<kRopeRule>>))
SB_SIMT_TABLE(KvWriteArgs,
  entry<BK, KvWriteArgs>(SB_SIMT_ID("kv_write.row"), ContractId::kKvWrite, "row", "none", run<BK, KvWrite<kKvWriteRule>>))
SB_SIMT_TABLE(AttentionArgs,
  entry<BK, AttentionArgs>(SB_SIMT_ID("attention_sliding.row"), ContractId::kAttentionSliding, "row x kv_head", "none", run_attention<BK, kSlidingAttentionRule>),
  entry<BK, AttentionArgs>(SB_SIMT_ID("attention_global.row"), ContractId::kAttentionGlobal, "row x kv_head", "segments", run_attention<BK, kGlobalAttentionRule>))
SB_SIMT_TABLE(ResidualArgs,
  entry<BK, ResidualArgs>(SB_SIMT_ID("residual.row"), ContractId::kResidual, "row", "none", run<BK, Residual<kResidualRule>>))
SB_SIMT_TABLE(LayerScaleArgs,
  entry<BK, LayerScaleArgs>(SB_SIMT_ID("layer_scale.row"), ContractId::kLayerScale, "row", "none", run<BK, LayerScale<kLayerScaleRule>>))
SB_SIMT_TABLE(GeluMulArgs,
  entry<BK, GeluMulArgs>(SB_SIMT_ID("gelu_mul.row"), ContractId::kGeluMul, "row", "none", run<BK, GeluMul<kGeluMulRule>>))
SB_SIMT_TABLE(HeadArgs,
  entry<BK, HeadArgs>(SB_SIMT_ID("head.tile256"), ContractId::kHead, "16 rows x 256 columns", "vocabulary tiles", run_head<BK, kHeadRule>))
SB_SIMT_TABLE(HeadFinishArgs,
  entry<BK, HeadFinishArgs>(SB_SIMT_ID("head_finish.row"), ContractId::kHead, "row", "shards", run<BK, HeadFinish<kHeadRule>>))
SB_SIMT_TABLE(SampleArgs,
  entry<BK, SampleArgs>(SB_SIMT_ID("sample.row"), ContractId::kSample, "row", "none", run<BK, Sample<kSampleRule>>))
#undef SB_SIMT_TABLE
#undef SB_SIMT_ID
// clang-format on

template <class BK>
constexpr Moves moves() {
  return {BK::kDevice, BK::kArch, run<BK, Digest>, run<BK, Gather>};
}

}  // namespace sb::simt
