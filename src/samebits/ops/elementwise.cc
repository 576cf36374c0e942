#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status residual(Ctx& ctx, const Site& site, const ResidualArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  SB_DO(Check("residual", site)
            .view("x", a.x, Dtype::kBf16, {rows, width})
            .view("p", a.p, Dtype::kBf16, {rows, width})
            .out("out", a.out, Dtype::kBf16, {rows, width})
            .same_or_apart("out", a.out, "x", a.x)
            .same_or_apart("out", a.out, "p", a.p)
            .done(ctx));
  return launch(ctx, {"residual", site, ContractId::kResidual, Dtype::kBf16, rows, "hidden", width},
                a);
}

Status layer_scale(Ctx& ctx, const Site& site, const LayerScaleArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  SB_DO(Check("layer_scale", site)
            .view("x", a.x, Dtype::kBf16, {rows, width})
            .view("scalar", a.scalar, Dtype::kBf16, {1})
            .out("out", a.out, Dtype::kBf16, {rows, width})
            .same_or_apart("out", a.out, "x", a.x)
            .done(ctx));
  return launch(
      ctx, {"layer_scale", site, ContractId::kLayerScale, Dtype::kBf16, rows, "hidden", width}, a);
}

Status gelu_mul(Ctx& ctx, const Site& site, const GeluMulArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  SB_DO(Check("gelu_mul", site)
            .view("gate", a.gate, Dtype::kBf16, {rows, width})
            .view("up", a.up, Dtype::kBf16, {rows, width})
            .optional_out("gelu", a.gelu, Dtype::kBf16, {rows, width})
            .out("out", a.out, Dtype::kBf16, {rows, width})
            .same_or_apart("out", a.out, "gate", a.gate)
            .same_or_apart("out", a.out, "up", a.up)
            .no_overlap("gelu", a.gelu, "gate", a.gate)
            .no_overlap("gelu", a.gelu, "up", a.up)
            .no_overlap("gelu", a.gelu, "out", a.out)
            .done(ctx));
  return launch(ctx, {"gelu_mul", site, ContractId::kGeluMul, Dtype::kBf16, rows, "N", width}, a);
}

}  // namespace sb::ops
