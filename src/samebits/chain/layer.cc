#include "samebits/chain/layer.h"

#include "samebits/ops/ops.h"

namespace sb {
namespace {

View as_heads(View v, int64_t heads, int64_t width) {
  View out = make_view(v.ptr, v.dtype, {v.shape[0], heads, width}, v.device);
  out.stride = {v.stride[0], width, 1, 0};
  return out;
}

// bf16 [T, columns] from the arena.
Result<View> take(LayerRun& r, int64_t columns) {
  return r.ctx.arena->take(Dtype::kBf16, {r.batch.rows, columns});
}

// fp32 [T, columns] if the taps want this boundary, else empty.
Result<View> take_acc(LayerRun& r, Tap acc, int64_t columns) {
  if (!r.ctx.wants({acc, r.layer})) return View{};
  return r.ctx.arena->take(Dtype::kF32, {r.batch.rows, columns});
}

Status emit(LayerRun& r, Tap tap, const View& value) {
  return emit_whole(r.ctx, {tap, r.layer}, value);
}

// Query-head and KV-head shards of [T, heads · D].
Status emit_q(LayerRun& r, Tap tap, const View& value) {
  const int64_t d = r.spec().head_dim;
  return emit_shard(r.ctx, {tap, r.layer}, value, r.plan.head_begin * d, r.arch.num_heads * d);
}
Status emit_kv(LayerRun& r, Tap tap, const View& value) {
  const KvShare& share = r.plan.kv(r.type);
  const int64_t d = r.spec().head_dim;
  if (!share.primary) {  // another rank reports this head; keeping it is this rank's own affair
    const Boundary b{tap, r.layer};
    return r.ctx.saved && r.ctx.saved->keeps(b) ? r.ctx.saved->keep(r.ctx, b, value) : Status{};
  }
  return emit_shard(r.ctx, {tap, r.layer}, value, share.begin * d, r.spec().num_kv_heads * d);
}
Status emit_inter(LayerRun& r, Tap tap, const View& value) {
  return emit_shard(r.ctx, {tap, r.layer}, value, r.plan.inter_begin, r.arch.intermediate);
}

// Rows [begin, begin + n) of a [N, K] weight.
WeightView weight_rows(const View& w, int64_t begin, int64_t n) {
  return {static_cast<const bf16*>(w.ptr) + begin * w.stride[0], n, w.shape[1], w.stride[0]};
}
// Columns [begin, begin + k) of it.
WeightView weight_columns(const View& w, int64_t begin, int64_t k) {
  return {static_cast<const bf16*>(w.ptr) + begin, w.shape[0], k, w.stride[0]};
}

Status norm(LayerRun& r, Tap tap, const View& x, const View& w, View& out) {
  SB_TRY(y, take(r, r.arch.hidden));
  out = y;
  SB_DO(ops::rmsnorm(r.ctx, r.site(tap),
                     {as_heads(x, 1, r.arch.hidden), w, as_heads(out, 1, r.arch.hidden),
                      r.arch.rms_eps, r.deviation(Tap::kAttnNorm)}));
  return emit(r, tap, out);
}

Status head_norm(LayerRun& r, Tap tap, const View& x, const View& w, int heads, View& out) {
  const int64_t d = r.spec().head_dim;
  SB_TRY(y, take(r, heads * d));
  out = y;
  return ops::rmsnorm(r.ctx, r.site(tap),
                      {as_heads(x, heads, d), w, as_heads(out, heads, d), r.arch.rms_eps,
                       r.deviation(Tap::kAttnNorm)});
}

// One GEMM on up to three weights, with its .acc boundaries.
struct Product {
  Tap acc;
  WeightView w;
  View* out;
  Status (*emit)(LayerRun&, Tap, const View&);
};

Status gemm(LayerRun& r, const View& x, std::span<const Product> products) {
  GemmArgs args{.x = x, .count = static_cast<int>(products.size())};
  for (int i = 0; i < args.count; ++i) {
    SB_TRY(out, take(r, products[i].w.n));
    SB_TRY(acc, take_acc(r, products[i].acc, products[i].w.n));
    *products[i].out = out;
    args.w[i] = products[i].w;
    args.out[i] = out;
    args.acc[i] = acc;
  }
  const Tap first = Tap(static_cast<int>(products[0].acc) + 1);  // the rounded value follows .acc
  SB_DO(ops::gemm(r.ctx, r.site(first), args));
  for (int i = 0; i < args.count; ++i) {
    if (args.acc[i]) SB_DO(products[i].emit(r, products[i].acc, args.acc[i]));
    SB_DO(products[i].emit(r, Tap(static_cast<int>(products[i].acc) + 1), args.out[i]));
  }
  return {};
}

// partial → combine → finish: this rank's columns of x and w, all ranks' sums.
Status gemm_across_ranks(LayerRun& r, Tap acc_tap, const View& x, const WeightView& w, View& out) {
  const int ranks = r.ctx.parallel->size();
  const int leaves = ops::gemm_leaves(w.k * ranks) / ranks;
  const Tap tap = Tap(static_cast<int>(acc_tap) + 1);
  SB_TRY(all, r.ctx.arena->take(Dtype::kF32, {ranks, r.batch.rows, w.n}));
  SB_TRY(y, take(r, w.n));
  SB_TRY(acc, take_acc(r, acc_tap, w.n));
  out = y;
  View mine = make_view(all.ptr, Dtype::kF32, {r.batch.rows, w.n}, all.device);
  if (ranks > 1) {
    SB_TRY(own, r.ctx.arena->take(Dtype::kF32, {r.batch.rows, w.n}));
    mine = own;
  }
  SB_DO(ops::gemm_partial(r.ctx, r.site(tap), {x, w, leaves, mine, r.deviation(acc_tap)}));
  if (ranks > 1) SB_DO(ops::combine(r.ctx, r.site(tap), mine, all));
  SB_DO(ops::gemm_finish(r.ctx, r.site(tap), {all, out, acc, r.deviation(acc_tap)}));
  if (acc) SB_DO(emit(r, acc_tap, acc));
  return emit(r, tap, out);
}

Status input_norm(LayerRun& r) {
  return norm(r, Tap::kAttnNorm, r.x, r.weights.input_norm, r.normed);
}

Status qkv(LayerRun& r) {
  const int64_t d = r.spec().head_dim;
  const KvShare& share = r.plan.kv(r.type);
  const Product q{Tap::kAttnQAcc, weight_rows(r.weights.q, r.plan.head_begin * d, r.heads() * d),
                  &r.q, emit_q};
  const Product k{Tap::kAttnKAcc, weight_rows(r.weights.k, share.begin * d, share.heads * d), &r.k,
                  emit_kv};
  if (r.type == LayerType::kGlobal) {  // k = v = u, projected once
    const Product two[] = {q, k};
    SB_DO(gemm(r, r.normed, two));
    r.v = r.k;
    return {};
  }
  const Product v{Tap::kAttnVAcc, weight_rows(r.weights.v, share.begin * d, share.heads * d), &r.v,
                  emit_kv};
  const Product three[] = {q, k, v};
  return gemm(r, r.normed, three);
}

Status q_norm(LayerRun& r) {
  SB_DO(head_norm(r, Tap::kAttnQNorm, r.q, r.weights.q_norm, r.heads(), r.q_norm));
  return emit_q(r, Tap::kAttnQNorm, r.q_norm);
}
Status k_norm(LayerRun& r) {
  SB_DO(head_norm(r, Tap::kAttnKNorm, r.k, r.weights.k_norm, r.kv_heads(), r.k_norm));
  return emit_kv(r, Tap::kAttnKNorm, r.k_norm);
}
Status v_norm(LayerRun& r) {  // of the raw projection, weightless
  const bool from_normed = r.type == LayerType::kGlobal && r.has(FaultKind::kVAfterKNorm);
  SB_DO(head_norm(r, Tap::kAttnVNorm, from_normed ? r.k_norm : r.v, {}, r.kv_heads(), r.v_norm));
  return emit_kv(r, Tap::kAttnVNorm, r.v_norm);
}

Status rope(LayerRun& r, Tap tap, const View& x, int heads, View& out) {
  const int64_t d = r.spec().head_dim;
  SB_TRY(y, take(r, heads * d));
  out = y;
  return ops::rope(r.ctx, r.site(tap),
                   {as_heads(x, heads, d), r.rope, r.batch.pos, r.batch.seq,
                    as_heads(out, heads, d), r.deviation(Tap::kAttnQRope)});
}
Status q_rope(LayerRun& r) {
  SB_DO(rope(r, Tap::kAttnQRope, r.q_norm, r.heads(), r.q_rope));
  return emit_q(r, Tap::kAttnQRope, r.q_rope);
}
Status k_rope(LayerRun& r) {
  SB_DO(rope(r, Tap::kAttnKRope, r.k_norm, r.kv_heads(), r.k_rope));
  return emit_kv(r, Tap::kAttnKRope, r.k_rope);
}

// Paged: write k̂, v̂ to their slots. Packed: this step's rows are the keys.
Status keys(LayerRun& r) {
  const int64_t d = r.spec().head_dim, heads = r.kv_heads();
  const int g = static_cast<int>(r.type);
  r.kv.table = r.batch.table[g];
  if (r.batch.paged) {
    return ops::kv_write(
        r.ctx, r.site(Tap::kAttnKRope),
        {as_heads(r.k_rope, heads, d), as_heads(r.v_norm, heads, d), r.batch.slot[g], r.kv});
  }
  r.kv.kind = KvView::kLinear;
  r.kv.k = static_cast<bf16*>(r.k_rope.ptr);
  r.kv.v = static_cast<bf16*>(r.v_norm.ptr);
  r.kv.token_stride = heads * d;
  r.kv.head_stride = d;
  r.kv.epoch = r.ctx.kv_epoch;
  return {};
}

Status attention(LayerRun& r) {
  const int64_t d = r.spec().head_dim, heads = r.heads();
  const bool sliding = r.type == LayerType::kSliding;
  SB_TRY(out, take(r, heads * d));
  SB_TRY(acc, take_acc(r, Tap::kAttnCtxAcc, heads * d));
  View lse;
  if (r.ctx.saved && r.ctx.saved->keeps_sums()) {
    SB_TRY(kept, r.ctx.arena->take(Dtype::kF32, {r.batch.rows, heads}));
    lse = kept;
  }
  r.ctx_out = out;
  AttentionArgs args{.q = as_heads(r.q_rope, heads, d),
                     .pos = r.batch.pos,
                     .seq = r.batch.seq,
                     .kv = r.kv,
                     .num_kv_heads = r.kv_heads(),
                     .window = sliding ? r.arch.window : 0,
                     .segment = sliding ? 0 : r.arch.segment,
                     .out = as_heads(out, heads, d),
                     .acc = acc ? as_heads(acc, heads, d) : View{},
                     .lse = lse,
                     .deviation = r.deviation(Tap::kAttnCtx)};
  SB_DO(ops::attention(r.ctx, r.site(Tap::kAttnCtx), args));
  if (lse) SB_DO(r.ctx.saved->keep_lse(r.ctx, r.layer, lse));
  if (acc) SB_DO(emit_q(r, Tap::kAttnCtxAcc, acc));
  return emit_q(r, Tap::kAttnCtx, out);
}

Status output(LayerRun& r) {
  const int64_t d = r.spec().head_dim;
  return gemm_across_ranks(r, Tap::kAttnOAcc, r.ctx_out,
                           weight_columns(r.weights.o, r.plan.head_begin * d, r.heads() * d),
                           r.projected);
}
Status post_attention_norm(LayerRun& r) {
  return norm(r, Tap::kAttnPostNorm, r.projected, r.weights.post_attention_norm, r.post);
}

Status add(LayerRun& r, Tap tap) {
  SB_TRY(h, take(r, r.arch.hidden));
  SB_DO(ops::residual(r.ctx, r.site(tap), {tap == Tap::kAttnResid ? r.x : r.resid, r.post, h}));
  r.resid = h;
  return emit(r, tap, h);
}
Status attention_residual(LayerRun& r) { return add(r, Tap::kAttnResid); }

Status ffn_norm(LayerRun& r) {
  return norm(r, Tap::kMlpNorm, r.resid, r.weights.pre_ffn_norm, r.normed);
}
Status gate_up(LayerRun& r) {
  const Product two[] = {
      {Tap::kMlpGateAcc, weight_rows(r.weights.gate, r.plan.inter_begin, r.plan.inter), &r.gate,
       emit_inter},
      {Tap::kMlpUpAcc, weight_rows(r.weights.up, r.plan.inter_begin, r.plan.inter), &r.up,
       emit_inter}};
  return gemm(r, r.normed, two);
}
Status gelu_mul(LayerRun& r) {
  SB_TRY(out, take(r, r.plan.inter));
  View gelu;
  if (r.ctx.wants({Tap::kMlpGelu, r.layer})) {
    SB_TRY(tapped, take(r, r.plan.inter));
    gelu = tapped;
  }
  r.act = out;
  const bool swapped = r.has(FaultKind::kGateUpSwapped);
  SB_DO(ops::gelu_mul(r.ctx, r.site(Tap::kMlpAct),
                      {swapped ? r.up : r.gate, swapped ? r.gate : r.up, gelu, out}));
  if (gelu) SB_DO(emit_inter(r, Tap::kMlpGelu, gelu));
  return emit_inter(r, Tap::kMlpAct, out);
}
Status down(LayerRun& r) {
  return gemm_across_ranks(r, Tap::kMlpDownAcc, r.act,
                           weight_columns(r.weights.down, r.plan.inter_begin, r.plan.inter),
                           r.projected);
}
Status post_ffn_norm(LayerRun& r) {
  return norm(r, Tap::kMlpPostNorm, r.projected, r.weights.post_ffn_norm, r.post);
}
Status ffn_residual(LayerRun& r) { return add(r, Tap::kMlpResid); }

Status scale(LayerRun& r) {
  SB_DO(ops::layer_scale(r.ctx, r.site(Tap::kLayerOut),
                         {r.resid, r.weights.layer_scalar, r.x, r.deviation(Tap::kLayerOut)}));
  return emit(r, Tap::kLayerOut, r.x);
}

constexpr LayerStep kSteps[] = {
    input_norm,
    qkv,
    q_norm,
    k_norm,
    v_norm,
    q_rope,
    k_rope,
    keys,
    attention,
    output,
    post_attention_norm,
    attention_residual,
    ffn_norm,
    gate_up,
    gelu_mul,
    down,
    post_ffn_norm,
    ffn_residual,
    scale,
};

}  // namespace

std::span<const LayerStep> layer_steps() { return kSteps; }

Status emit_shard(Ctx& ctx, Boundary b, const View& value, int64_t column_begin, int64_t width) {
  if (ctx.saved && ctx.saved->keeps(b)) SB_DO(ctx.saved->keep(ctx, b, value));
  if (!ctx.taps || !ctx.taps->wants(b)) return {};
  return ctx.taps->emit(ctx, b, value, 0, column_begin, width);
}

Status emit_whole(Ctx& ctx, Boundary b, const View& value) {
  if (ctx.saved && ctx.saved->keeps(b)) SB_DO(ctx.saved->keep(ctx, b, value));
  if (!ctx.taps || !ctx.taps->wants(b) || ctx.parallel->rank() != 0) return {};
  return ctx.taps->emit(ctx, b, value, 0, 0, value.shape[1]);
}

}  // namespace sb
