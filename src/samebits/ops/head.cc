// The operators of the head and of sampling: what they check before they run.
#include <cmath>

#include "samebits/contract/head_shape.h"
#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status head(Ctx& ctx, const Site& site, const HeadArgs& a) {
  const int64_t rows = a.z.shape[0], hidden = a.z.shape[1];
  const ColumnRange range = shard_columns(a.vocab, a.shard_begin, a.shards);
  SB_DO(
      Check("head", site)
          .view("z", a.z, Dtype::kBf16, {rows, hidden})
          .that(a.w.n == 0 || (a.w.k == hidden && a.w.ld >= hidden && a.w.ptr),
                "the head weight has " + std::to_string(a.w.k) + " columns, needs " +
                    std::to_string(hidden))
          .that(a.shards > 0 && a.shard_begin >= 0 && a.shard_begin + a.shards <= kHeadRule.shards,
                "shards lie outside the 8 of the contract")
          .that(a.vocab_begin == range.begin && a.w.n == range.end - range.begin,
                "the weight rows are not those of the shards")
          .view("target", a.target, Dtype::kI32, {rows})
          .optional("suppress", a.suppress, Dtype::kU8, {a.vocab})
          .that(std::isfinite(a.temperature) && a.temperature > 0,
                "the temperature is " + std::to_string(a.temperature) +
                    ", needs to be finite and positive")
          .that(std::isfinite(a.softcap) && a.softcap > 0, "the softcap is not positive")
          .out("tile_ms", a.tile_ms, Dtype::kF32, {rows, head_tiles(a.vocab, a.shards), 2})
          .out("shard_ms", a.shard_ms, Dtype::kF32, {rows, a.shards, 2})
          .out("c_target", a.c_target, Dtype::kF32, {rows})
          .optional_out("logit", a.logit, Dtype::kF32, {rows, a.w.n})
          .optional_out("capped", a.capped, Dtype::kF32, {rows, a.w.n})
          .done(ctx));
  return launch(ctx, {"head", site, ContractId::kHead, Dtype::kF32, rows, "V", a.w.n, "K", hidden},
                a);
}

Status head_finish(Ctx& ctx, const Site& site, const HeadFinishArgs& a) {
  const int64_t ranks = ctx.parallel->size(), rows = a.shard_ms.shape[1];
  SB_DO(Check("head_finish", site)
            .subtree_of_each_rank(ctx.parallel->size())
            .view("shard_ms", a.shard_ms, Dtype::kF32, {ranks, rows, kHeadRule.shards / ranks, 2})
            .that(a.shard_ms.stride[2] == 2 || a.shard_ms.shape[2] <= 1,
                  "the shards of shard_ms are not contiguous")
            .view("c_target", a.c_target, Dtype::kF32, {ranks, rows})
            .view("owner", a.owner, Dtype::kI32, {rows})
            .optional_out("logp", a.logp, Dtype::kF32, {rows})
            .optional_out("lse", a.lse, Dtype::kF32, {rows})
            .optional_out("max_sum", a.max_sum, Dtype::kF32, {rows, 2})
            .done(ctx));
  return launch(ctx, {"head_finish", site, ContractId::kHead, Dtype::kF32, rows}, a);
}

Status sample(Ctx& ctx, const Site& site, const SampleArgs& a) {
  const int64_t rows = a.capped.shape[0], cols = a.capped.shape[1];
  SB_DO(Check("sample", site)
            .view("capped", a.capped, Dtype::kF32, {rows, cols})
            .optional("suppress", a.suppress, Dtype::kU8, {-1})
            .that(a.vocab_begin >= 0, "the vocabulary begins before id 0")
            .that(!a.suppress || a.suppress.shape[0] >= a.vocab_begin + cols,
                  "suppress ends before the last id of these logits")
            .view("row_hash", a.row_hash, Dtype::kU64, {rows})
            .view("position", a.position, Dtype::kI32, {rows})
            .out("best", a.best, Dtype::kF32, {rows})
            .out("token", a.token, Dtype::kI32, {rows})
            .out("c_token", a.c_token, Dtype::kF32, {rows})
            .that(std::isfinite(a.temperature) && a.temperature > 0,
                  "the temperature is not finite and positive")
            .done(ctx));
  return launch(ctx, {"sample", site, ContractId::kSample, Dtype::kI32, rows, "V", cols}, a);
}

}  // namespace sb::ops
