#include "samebits/backend/moves.h"

#include "samebits/ops/check.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

Status combine(Ctx& ctx, const Site& site, const View& in, const View& out) {
  const int ranks = ctx.parallel->size();
  SB_DO(Check("combine", site)
            .that(in.contiguous() && out.contiguous(), "combine moves contiguous bytes")
            .that(out.bytes() == in.bytes() * ranks, "the output does not hold one part a rank")
            .done(ctx));
  return ctx.parallel->all_gather(*ctx.exec.device, in.ptr, out.ptr,
                                  static_cast<size_t>(in.bytes()));
}

Status gather(Ctx& ctx, const Site& site, const GatherArgs& a) {
  SB_DO(Check("gather", site)
            .view("x", a.x, Dtype::kBf16, {-1, a.out.shape[1]})
            .view("index", a.index, Dtype::kI32, {a.out.shape[0]})
            .view("out", a.out, Dtype::kBf16, {-1, -1})
            .done(ctx));
  SB_TRY(moves, moves_of(ctx.exec));
  DeviceScope open(*ctx.exec.device);
  return moves.gather_rows(ctx.exec, a);
}

Status digest(Ctx& ctx, const Site& site, const DigestArgs& a) {
  SB_DO(Check("digest", site)
            .view("x", a.x, a.x.dtype, {-1, -1})
            .that(a.x.dtype == Dtype::kBf16 || a.x.dtype == Dtype::kF32, "x is not bf16 or f32")
            .view("digest", a.digest, Dtype::kU64, {a.x.shape[0]})
            .view("non_finite", a.non_finite, Dtype::kU8, {a.x.shape[0]})
            .done(ctx));
  SB_TRY(moves, moves_of(ctx.exec));
  DeviceScope open(*ctx.exec.device);
  return moves.digest_rows(ctx.exec, a);
}

}  // namespace sb::ops
