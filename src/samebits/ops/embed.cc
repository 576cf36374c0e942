#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status embed(Ctx& ctx, const Site& site, const EmbedArgs& a) {
  const int64_t rows = a.out.shape[0], hidden = a.out.shape[1];
  SB_DO(Check("embed", site)
            .view("table", a.table, Dtype::kBf16, {-1, hidden})
            .view("token", a.token, Dtype::kI32, {rows})
            .view("seq", a.seq, Dtype::kI32, {rows})
            .out("out", a.out, Dtype::kBf16, {rows, hidden})
            .no_overlap("out", a.out, "table", a.table)
            .done(ctx));
  return launch(ctx, {"embed", site, ContractId::kEmbed, Dtype::kBf16, rows, "hidden", hidden}, a);
}

}  // namespace sb::ops
