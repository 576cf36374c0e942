#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status rmsnorm(Ctx& ctx, const Site& site, const RmsNormArgs& a) {
  const int64_t rows = a.x.shape[0], heads = a.x.shape[1], width = a.x.shape[2];
  SB_DO(Check("rmsnorm", site)
            .view("x", a.x, Dtype::kBf16, {rows, heads, width})
            .optional("w", a.w, Dtype::kBf16, {width})
            .out("out", a.out, Dtype::kBf16, {rows, heads, width})
            .that(width > 0, "the width is 0")
            .that(a.eps > 0, "eps is " + std::to_string(a.eps) + ", needs to be positive")
            .no_overlap("out", a.out, "x", a.x)
            .done(ctx));
  return launch(
      ctx, {"rmsnorm", site, ContractId::kRmsNorm, Dtype::kBf16, rows, "heads", heads, "D", width},
      a);
}

}  // namespace sb::ops
