#include "samebits/chain/decoder.h"

#include <algorithm>

#include "samebits/base/bits.h"
#include "samebits/chain/layer.h"
#include "samebits/contract/head_shape.h"
#include "samebits/contract/rules.h"
#include "samebits/ops/ops.h"

namespace sb {
namespace {

constexpr int64_t kHeadChunk = 64;  // head rows at a time: bounds logits in memory

// What padding rows start from. They may hold anything; tests put NaN and 1e4 there.
void fill_padding(Ctx& ctx, const HostBatch& host, const View& x) {
  const int64_t hidden = x.shape[1];
  std::vector<uint16_t> row(static_cast<size_t>(hidden), 0);
  for (size_t i = 0; i < row.size() && !host.pad_fill.empty(); ++i) {
    row[i] = host.pad_fill[i % host.pad_fill.size()];
  }
  for (int64_t t = 0; t < host.rows(); ++t) {
    if (host.seq[t] >= 0) continue;
    ctx.exec.device->copy_in(static_cast<bf16*>(x.ptr) + t * hidden, row.data(),
                             row.size() * sizeof(bf16));
  }
}

}  // namespace

Result<View> Decoder::forward(Ctx& ctx, const Batch& batch, const HostBatch& host,
                              ScheduleKind schedule, std::span<const KvView> kv, int first_layer,
                              View given) {
  const Architecture& arch = model_.arch;
  const Weights& weights = model_.weights;
  SB_TRY(x, ctx.arena->take(Dtype::kBf16, {batch.rows, arch.hidden}));
  if (first_layer == 0) {
    fill_padding(ctx, host, x);
    const Boundary b{Tap::kEmbed, -1};
    SB_DO(ops::embed(ctx, {b, {}},
                     {weights.embed, batch.token, batch.seq, x,
                      deviation_at(faults_, schedule, Tap::kEmbed, -1)}));
    SB_DO(emit_whole(ctx, b, x));
  } else {
    x = given;
  }
  const auto longest = std::max_element(host.seq_len.begin(), host.seq_len.end());
  const int64_t positions = longest == host.seq_len.end() ? 1 : std::max(1, *longest);
  for (int i = first_layer; i < arch.num_layers(); ++i) {
    ArenaScope scope(*ctx.arena);
    const LayerType type = arch.layers[i];
    SB_TRY(table, rope_.get(type, positions));
    LayerRun run{.ctx = ctx,
                 .arch = arch,
                 .weights = weights.layers[i],
                 .plan = plan_,
                 .batch = batch,
                 .faults = faults_,
                 .schedule = schedule,
                 .layer = i,
                 .type = type,
                 .rope = table,
                 .kv = batch.paged ? kv[i] : KvView{},
                 .x = x};
    for (LayerStep step : layer_steps()) SB_DO(step(run));
  }
  SB_TRY(z, ctx.arena->take(Dtype::kBf16, {batch.rows, arch.hidden}));
  const Boundary b{Tap::kFinalNorm, -1};
  auto as_rows = [&](const View& v) {
    return make_view(v.ptr, v.dtype, {batch.rows, 1, arch.hidden}, v.device);
  };
  SB_DO(ops::rmsnorm(ctx, {b, {}},
                     {as_rows(x), weights.final_norm, as_rows(z), arch.rms_eps,
                      deviation_at(faults_, schedule, Tap::kAttnNorm, -1)}));
  SB_DO(emit_whole(ctx, b, z));
  return z;
}

Status Decoder::head(Ctx& ctx, const Batch& batch, ScheduleKind schedule, const View& hidden,
                     const HeadWork& work) {
  const Architecture& arch = model_.arch;
  const int ranks = plan_.size;
  const int64_t total = batch.head_rows ? batch.head_rows.shape[0] : 0;
  const Boundary logit_b{Tap::kHeadLogit, -1}, cap_b{Tap::kHeadSoftcap, -1},
      lse_b{Tap::kHeadLse, -1}, logp_b{Tap::kLogp, -1};
  const Site site{logp_b, {}};
  const bool twice = has_fault(faults_, schedule, FaultKind::kTemperatureTwice);
  const float temperature = twice ? work.temperature * work.temperature : work.temperature;
  auto emit = [&](Boundary b, const View& v, int64_t row, int64_t begin, int64_t width) -> Status {
    if (!v || !ctx.taps || !ctx.taps->wants(b)) return {};
    return ctx.taps->emit(ctx, b, v, row, begin, width);
  };
  for (int64_t r0 = 0; r0 < total; r0 += kHeadChunk) {
    ArenaScope scope(*ctx.arena);
    Arena& arena = *ctx.arena;
    const int64_t rows = std::min(kHeadChunk, total - r0), cols = plan_.vocab_rows;
    SB_TRY(z, arena.take(Dtype::kBf16, {rows, arch.hidden}));
    SB_DO(ops::gather(ctx, site, {hidden, rows_of(batch.head_rows, r0, rows), z}));
    HeadArgs args;
    args.z = z;
    args.w = {static_cast<const bf16*>(model_.weights.head.ptr) + plan_.vocab_begin * arch.hidden,
              cols, arch.hidden, arch.hidden};
    args.vocab = arch.vocab;
    args.vocab_begin = plan_.vocab_begin;
    args.shard_begin = plan_.shard_begin;
    args.shards = plan_.shards;
    args.target = rows_of(batch.target, r0, rows);
    args.suppress = work.suppress;
    args.softcap = arch.softcap;
    args.temperature = temperature;
    args.deviation = deviation_at(faults_, schedule, Tap::kHeadSoftcap, -1);
    SB_TRY(tiles, arena.take(Dtype::kF32, {rows, head_tiles(arch.vocab, plan_.shards), 2}));
    args.tile_ms = tiles;
    SB_TRY(ms_all, arena.take(Dtype::kF32, {ranks, rows, plan_.shards, 2}));
    SB_TRY(c_all, arena.take(Dtype::kF32, {ranks, rows}));
    SB_TRY(ms, arena.take(Dtype::kF32, {rows, plan_.shards, 2}));
    SB_TRY(c, arena.take(Dtype::kF32, {rows}));
    args.shard_ms = ms;
    args.c_target = c;
    if (ctx.wants(logit_b)) {
      SB_TRY(logit, arena.take(Dtype::kF32, {rows, cols}));
      args.logit = logit;
    }
    if (ctx.wants(cap_b) || work.sample) {
      SB_TRY(capped, arena.take(Dtype::kF32, {rows, cols}));
      args.capped = capped;
    }
    SB_DO(ops::head(ctx, site, args));
    SB_DO(emit(logit_b, args.logit, r0, plan_.vocab_begin, arch.vocab));
    SB_DO(emit(cap_b, args.capped, r0, plan_.vocab_begin, arch.vocab));

    View owner = rows_of(work.owner, r0, rows);
    if (work.sample) SB_DO(draw(ctx, site, work, args, r0, c, owner));
    SB_DO(ops::combine(ctx, site, ms, ms_all));
    SB_DO(ops::combine(ctx, site, c, c_all));
    SB_TRY(lse, arena.take(Dtype::kF32, {rows, 1}));
    View lse_row = make_view(lse.ptr, Dtype::kF32, {rows}, lse.device);
    View logp = rows_of(work.logp, r0, rows);
    View max_sum;
    if (ctx.saved && ctx.saved->keeps_sums()) {
      SB_TRY(kept, arena.take(Dtype::kF32, {rows, 2}));
      max_sum = kept;
    }
    SB_DO(ops::head_finish(ctx, site, {ms_all, c_all, owner, logp, lse_row, max_sum}));
    if (max_sum) SB_DO(ctx.saved->keep_max_sum(ctx, r0, max_sum));
    if (plan_.rank != 0) continue;
    SB_DO(emit(lse_b, lse, r0, 0, 1));
    SB_DO(emit(logp_b, make_view(logp.ptr, Dtype::kF32, {rows, 1}, logp.device), r0, 0, 1));
  }
  return {};
}

// Draws one token per row. Each rank proposes its best id; the best score wins, the lowest rank
// (and with it the lowest id) on ties. `c` becomes c/T of the drawn id and `owner` the rank that
// has it.
Status Decoder::draw(Ctx& ctx, const Site& site, const HeadWork& work, const HeadArgs& head,
                     int64_t row_begin, const View& c, const View& owner) {
  Arena& arena = *ctx.arena;
  Device& device = *ctx.exec.device;
  const int ranks = plan_.size;
  const int64_t rows = c.shape[0];
  SB_TRY(best, arena.take(Dtype::kF32, {rows}));
  SB_TRY(token, arena.take(Dtype::kI32, {rows}));
  SB_TRY(best_all, arena.take(Dtype::kF32, {ranks, rows}));
  SB_TRY(token_all, arena.take(Dtype::kI32, {ranks, rows}));
  SB_DO(ops::sample(ctx, site,
                    {.capped = head.capped,
                     .vocab_begin = head.vocab_begin,
                     .suppress = work.suppress,
                     .row_hash = rows_of(work.row_hash, row_begin, rows),
                     .position = rows_of(work.position, row_begin, rows),
                     .temperature = head.temperature,
                     .seed = work.seed,
                     .greedy = work.greedy,
                     .best = best,
                     .token = token,
                     .c_token = c}));
  SB_DO(ops::combine(ctx, site, best, best_all));
  SB_DO(ops::combine(ctx, site, token, token_all));
  std::vector<float> scores(static_cast<size_t>(ranks * rows));
  std::vector<int32_t> ids(scores.size()), chosen(static_cast<size_t>(rows)), from(chosen.size());
  device.copy_out(scores.data(), best_all.ptr, scores.size() * sizeof(float));
  device.copy_out(ids.data(), token_all.ptr, ids.size() * sizeof(int32_t));
  for (int64_t r = 0; r < rows; ++r) {
    int winner = -1;
    for (int p = 0; p < ranks; ++p) {
      const int64_t i = p * rows + r;
      if (ids[i] >= 0 && (winner < 0 || scores[i] > scores[winner * rows + r])) winner = p;
    }
    if (winner < 0) {
      return refuse(Code::kRefused, "draw a token", "every id is suppressed",
                    "leave at least one id unsuppressed");
    }
    chosen[r] = ids[winner * rows + r];
    from[r] = winner;
  }
  device.copy_in(rows_of(work.token, row_begin, rows).ptr, chosen.data(), chosen.size() * 4);
  device.copy_in(owner.ptr, from.data(), from.size() * 4);
  return {};
}

}  // namespace sb
