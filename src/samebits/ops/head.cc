#include <cmath>

#include "samebits/contract/head_shape.h"
#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status head(Ctx& ctx, const Site& site, const HeadArgs& a) {
  const int64_t rows = a.z.shape[0], hidden = a.z.shape[1];
  const ColumnRange range = shard_columns(a.vocab, a.shard_begin, a.shards);
  SB_DO(Check("head", site)
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
            .view("shard_ms", a.shard_ms, Dtype::kF32, {rows, a.shards, 2})
            .view("c_target", a.c_target, Dtype::kF32, {rows})
            .optional("logit", a.logit, Dtype::kF32, {rows, a.w.n})
            .optional("capped", a.capped, Dtype::kF32, {rows, a.w.n})
            .done(ctx));
  return launch(ctx, {"head", site, ContractId::kHead, Dtype::kF32, rows, "V", a.w.n, "K", hidden},
                a);
}

Status head_finish(Ctx& ctx, const Site& site, const HeadFinishArgs& a) {
  const int64_t ranks = ctx.parallel->size(), rows = a.shard_ms.shape[1];
  SB_DO(Check("head_finish", site)
            .view("shard_ms", a.shard_ms, Dtype::kF32, {ranks, rows, kHeadRule.shards / ranks, 2})
            .view("c_target", a.c_target, Dtype::kF32, {ranks, rows})
            .view("owner", a.owner, Dtype::kI32, {rows})
            .optional("logp", a.logp, Dtype::kF32, {rows})
            .optional("lse", a.lse, Dtype::kF32, {rows})
            .done(ctx));
  return launch(ctx, {"head_finish", site, ContractId::kHead, Dtype::kF32, rows}, a);
}

Status sample(Ctx& ctx, const Site& site, const SampleArgs& a) {
  const int64_t rows = a.capped.shape[0], cols = a.capped.shape[1];
  SB_DO(Check("sample", site)
            .view("capped", a.capped, Dtype::kF32, {rows, cols})
            .optional("suppress", a.suppress, Dtype::kU8, {-1})
            .view("row_hash", a.row_hash, Dtype::kU64, {rows})
            .view("position", a.position, Dtype::kI32, {rows})
            .view("best", a.best, Dtype::kF32, {rows})
            .view("token", a.token, Dtype::kI32, {rows})
            .view("c_token", a.c_token, Dtype::kF32, {rows})
            .that(std::isfinite(a.temperature) && a.temperature > 0,
                  "the temperature is not finite and positive")
            .done(ctx));
  return launch(ctx, {"sample", site, ContractId::kSample, Dtype::kI32, rows, "V", cols}, a);
}

}  // namespace sb::ops
