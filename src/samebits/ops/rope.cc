#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status rope(Ctx& ctx, const Site& site, const RopeArgs& a) {
  const int64_t rows = a.x.shape[0], heads = a.x.shape[1], width = a.x.shape[2];
  SB_DO(Check("rope", site)
            .view("x", a.x, Dtype::kBf16, {rows, heads, width})
            .view("table", a.table, Dtype::kF32, {-1, 2, -1, -1})
            .view("pos", a.pos, Dtype::kI32, {rows})
            .view("seq", a.seq, Dtype::kI32, {rows})
            .out("out", a.out, Dtype::kBf16, {rows, heads, width})
            .that(a.table.shape[2] > 0, "the table has blocks of no positions")
            .that(width % 2 == 0, "the head dimension is odd")
            .that(a.table.shape[3] <= width / 2, "the table has more pairs than half a head")
            .no_overlap("out", a.out, "x", a.x)
            .done(ctx));
  return launch(
      ctx, {"rope", site, ContractId::kRope, Dtype::kBf16, rows, "heads", heads, "D", width}, a);
}

}  // namespace sb::ops
