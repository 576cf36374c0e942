#include "samebits/contract/rules.h"
#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status attention(Ctx& ctx, const Site& site, const AttentionArgs& a) {
  const int64_t rows = a.q.shape[0], heads = a.q.shape[1], width = a.q.shape[2];
  const bool sliding = site.type == LayerType::kSliding;
  SB_DO(Check("attention", site)
            .view("q", a.q, Dtype::kBf16, {rows, heads, width})
            .view("pos", a.pos, Dtype::kI32, {rows})
            .view("seq", a.seq, Dtype::kI32, {rows})
            .out("out", a.out, Dtype::kBf16, {rows, heads, width})
            .optional_out("acc", a.acc, Dtype::kF32, {rows, heads, width})
            .optional_out("lse", a.lse, Dtype::kF32, {rows, heads})
            .kv(a.kv, a.num_kv_heads, width)
            .that(a.num_kv_heads > 0 && heads % a.num_kv_heads == 0,
                  std::to_string(heads) + " query heads do not divide into " +
                      std::to_string(a.num_kv_heads) + " KV heads")
            .that(sliding ? a.window >= 1 && a.segment == 0 : a.window == 0,
                  sliding ? "a sliding layer needs a window and no segment"
                          : "a global layer has no window")
            .that(sliding || (a.segment > 0 && a.segment % kGlobalAttentionRule.block_keys == 0),
                  "the segment is " + std::to_string(a.segment) +
                      ", needs to be a positive multiple of 64 keys")
            .that(a.kv.epoch == ctx.kv_epoch, "the keys were made with other weights")
            .no_overlap("out", a.out, "q", a.q)
            .done(ctx));
  const ContractId id = sliding ? ContractId::kAttentionSliding : ContractId::kAttentionGlobal;
  return launch(ctx, {"attention", site, id, Dtype::kBf16, rows, "heads", heads, "D", width}, a);
}

}  // namespace sb::ops
