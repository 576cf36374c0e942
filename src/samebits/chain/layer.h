// One decoder layer as a table of steps. Each step runs one operator and emits the boundaries it
// produces; the state it works on is LayerRun. Buffers come from the arena and live for the layer.
#pragma once

#include <span>

#include "samebits/chain/batch.h"
#include "samebits/chain/fault.h"
#include "samebits/chain/rank_plan.h"
#include "samebits/model/weights.h"
#include "samebits/ops/ctx.h"

namespace sb {

struct LayerRun {
  Ctx& ctx;
  const Architecture& arch;
  const LayerWeights& weights;
  const RankPlan& plan;
  const Batch& batch;
  const std::vector<Fault>& faults;
  ScheduleKind schedule;
  int layer;
  LayerType type;
  View rope;  // table of this layer type
  KvView kv;  // where keys are read; filled by the KV step when the batch is packed
  View x;     // bf16 [T, hidden]: input, then output of the layer

  // Values between steps: bf16 [T, …].
  View normed, q, k, v, q_norm, k_norm, v_norm, q_rope, k_rope, ctx_out, projected, post, resid;
  View gate, up, act;

  const AttentionSpec& spec() const { return arch.attention(type); }
  int heads() const { return plan.heads; }
  int kv_heads() const { return plan.kv(type).heads; }
  Site site(Tap tap) const { return {{tap, layer}, type}; }
  // What the operator at `tap` is told. All norms are told the same, and so are q and k of RoPE.
  Deviation deviation(Tap tap) const { return deviation_at(faults, schedule, tap, layer); }
  bool has(FaultKind kind) const { return has_fault(faults, schedule, kind, layer); }
};

using LayerStep = Status (*)(LayerRun&);

// The steps of a layer, in causal order. Both layer types walk the same table: they differ in
// shapes, rotary table, window and where v comes from, and those are data of LayerRun.
std::span<const LayerStep> layer_steps();

// Hands a value to the taps if they want it. Values that every rank holds whole are emitted by rank
// 0; a shard says where its columns begin in the whole row.
Status emit_whole(Ctx& ctx, Boundary b, const View& value);
Status emit_shard(Ctx& ctx, Boundary b, const View& value, int64_t column_begin, int64_t width);

}  // namespace sb
