#include "samebits/contract/rules.h"
#include "samebits/ops/check.h"
#include "samebits/ops/launch.h"
#include "samebits/ops/ops.h"

namespace sb::ops {

int gemm_leaves(int64_t k) {
  return k % (kGemmTreeRule.leaves * kGemmTreeRule.step_k) == 0 ? kGemmTreeRule.leaves : 1;
}

Status gemm(Ctx& ctx, const Site& site, const GemmArgs& a) {
  const int64_t rows = a.x.shape[0], k = a.x.shape[1];
  Check check("gemm", site);
  check.view("x", a.x, Dtype::kBf16, {rows, k})
      .that(a.count >= 1 && a.count <= 3, "takes 1 to 3 weights");
  int64_t columns = 0;
  for (int i = 0; i < a.count && i < 3; ++i) {
    check.weight("w", a.w[i], k)
        .out("out", a.out[i], Dtype::kBf16, {rows, a.w[i].n})
        .optional_out("acc", a.acc[i], Dtype::kF32, {rows, a.w[i].n})
        .no_overlap("out", a.out[i], "x", a.x);
    columns += a.w[i].n;
  }
  SB_DO(check.done(ctx));
  return launch(ctx, {"gemm", site, ContractId::kGemm, Dtype::kBf16, rows, "N", columns, "K", k},
                a);
}

Status gemm_partial(Ctx& ctx, const Site& site, const GemmPartialArgs& a) {
  const int64_t rows = a.x.shape[0], k = a.x.shape[1];
  const int ranks = ctx.parallel->size();
  SB_DO(Check("gemm_partial", site)
            .view("x", a.x, Dtype::kBf16, {rows, k})
            .weight("w", a.w, k)
            .out("partial", a.partial, Dtype::kF32, {rows, a.w.n})
            .subtree_of_each_rank(ranks)
            .that(ranks == 1 || gemm_leaves(k * ranks) == kGemmTreeRule.leaves,
                  "several ranks need K mod 128 = 0, K is " + std::to_string(k * ranks))
            .that(a.leaves > 0 && a.leaves == gemm_leaves(k * ranks) / ranks,
                  "a rank of " + std::to_string(ranks) + " has " + std::to_string(a.leaves) +
                      " leaves of K = " + std::to_string(k * ranks))
            .done(ctx));
  return launch(
      ctx, {"gemm_partial", site, ContractId::kGemmTree, Dtype::kF32, rows, "N", a.w.n, "K", k}, a);
}

Status gemm_finish(Ctx& ctx, const Site& site, const GemmFinishArgs& a) {
  const int64_t rows = a.out.shape[0], cols = a.out.shape[1];
  SB_DO(Check("gemm_finish", site)
            .subtree_of_each_rank(ctx.parallel->size())
            .view("partials", a.partials, Dtype::kF32, {ctx.parallel->size(), rows, cols})
            .out("out", a.out, Dtype::kBf16, {rows, cols})
            .optional_out("acc", a.acc, Dtype::kF32, {rows, cols})
            .done(ctx));
  return launch(ctx, {"gemm_finish", site, ContractId::kGemmTree, Dtype::kBf16, rows, "N", cols},
                a);
}

}  // namespace sb::ops
