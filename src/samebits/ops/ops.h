// The forward operators. Each goes from boundary to boundary: check → select by (contract, profile,
// device) → run → record. Outputs and scratch come from the caller; nothing here allocates or
// waits. Shapes and meaning of the arguments: backend/op_args.h. Contracts: `samebits contract
// list`.
//
// Every function refuses (kRefused) wrong dtypes, shapes, strides or overlaps, and profiles or
// devices that no implementation claims.
#pragma once

#include "samebits/backend/op_args.h"
#include "samebits/ops/ctx.h"

namespace sb::ops {

// x = R(E[id]·s). Row ids must lie in the table (the batch builder has checked them).
Status embed(Ctx& ctx, const Site& site, const EmbedArgs& a);

// Norm over the last dimension of [T, heads, D]; w empty = weightless.
Status rmsnorm(Ctx& ctx, const Site& site, const RmsNormArgs& a);

// One-leaf GEMMs on up to three weights that share x.
Status gemm(Ctx& ctx, const Site& site, const GemmArgs& a);

// o and down: one rank's subtree of leaves, then all ranks' subtrees added and rounded.
// gemm_leaves: 8 where K mod 128 = 0, else 1; with several ranks only 8 works.
int gemm_leaves(int64_t k);
Status gemm_partial(Ctx& ctx, const Site& site, const GemmPartialArgs& a);
Status gemm_finish(Ctx& ctx, const Site& site, const GemmFinishArgs& a);

Status rope(Ctx& ctx, const Site& site, const RopeArgs& a);

// Refuses a cache of another epoch than ctx.kv_epoch.
Status kv_write(Ctx& ctx, const Site& site, const KvWriteArgs& a);

// site.type picks the contract. Refuses a cache of another epoch, a window on a global layer, a
// segment that is not a positive multiple of 64.
Status attention(Ctx& ctx, const Site& site, const AttentionArgs& a);

Status residual(Ctx& ctx, const Site& site, const ResidualArgs& a);
Status layer_scale(Ctx& ctx, const Site& site, const LayerScaleArgs& a);
Status gelu_mul(Ctx& ctx, const Site& site, const GeluMulArgs& a);

// Refuses T that is not finite and positive.
Status head(Ctx& ctx, const Site& site, const HeadArgs& a);
Status head_finish(Ctx& ctx, const Site& site, const HeadFinishArgs& a);
Status sample(Ctx& ctx, const Site& site, const SampleArgs& a);

// bytes from every rank, in rank order: out [ranks, …] of in. Moves bytes, adds nothing.
Status combine(Ctx& ctx, const Site& site, const View& in, const View& out);

// Helpers without a contract (backend/moves.h); they leave no record.
Status gather(Ctx& ctx, const Site& site, const GatherArgs& a);
Status digest(Ctx& ctx, const Site& site, const DigestArgs& a);

}  // namespace sb::ops
