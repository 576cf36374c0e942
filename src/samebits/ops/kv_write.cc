#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status kv_write(Ctx& ctx, const Site& site, const KvWriteArgs& a) {
  const int64_t rows = a.k.shape[0], heads = a.k.shape[1], width = a.k.shape[2];
  SB_DO(Check("kv_write", site)
            .view("k", a.k, Dtype::kBf16, {rows, heads, width})
            .view("v", a.v, Dtype::kBf16, {rows, heads, width})
            .view("slot", a.slot, Dtype::kI32, {rows})
            .kv(a.kv, heads, width)
            .that(a.kv.kind == KvView::kPaged, "writes go to a paged cache")
            .that(a.kv.epoch == ctx.kv_epoch, "the cache holds entries of other weights")
            .done(ctx));
  return launch(
      ctx, {"kv_write", site, ContractId::kKvWrite, Dtype::kBf16, rows, "heads", heads, "D", width},
      a);
}

}  // namespace sb::ops
