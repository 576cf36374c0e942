// Decoder: the one chain. Rollout and training call the same code; what differs is the Batch and
// where keys come from (a paged cache, or the packed step's own rows).
//
// A layer is a table of steps, one per operator; a planner may replace an exact run of steps by a
// fused implementation that claims the same contracts. Views are never dereferenced here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "samebits/chain/batch.h"
#include "samebits/chain/fault.h"
#include "samebits/chain/kv_cache.h"
#include "samebits/chain/rank_plan.h"
#include "samebits/chain/rope_cache.h"
#include "samebits/model/weights.h"
#include "samebits/ops/ctx.h"

namespace sb {

// What the head is asked for, for the batch's head rows (R of them).
struct HeadWork {
  float temperature = 1.0f;
  View suppress;  // u8 [V] or empty
  View owner;     // i32 [R]: rank that owns each target, −1: none; sampling writes it
  View logp;      // f32 [R]: written where there is a target
  // Sampling instead of scoring: draws a token per head row and scores it.
  bool sample = false, greedy = false;
  uint64_t seed = 0;
  View row_hash;  // u64 [R]
  View position;  // i32 [R]: position of the token to draw
  View token;     // i32 [R]: drawn
};

class Decoder {
 public:
  // `model`, `rope` must outlive it.
  Decoder(const Model& model, RopeCache& rope, const RankPlan& plan, std::vector<Fault> faults)
      : model_(model), rope_(rope), plan_(plan), faults_(std::move(faults)) {}

  // Runs layers [first_layer, num_layers) and the final norm: returns bf16 [T, hidden] from the
  // arena. first_layer > 0 starts from `given`, the output of the layer before (bf16 [T, hidden]).
  // kv: one view per layer when the batch is paged; empty when it is packed.
  Result<View> forward(Ctx& ctx, const Batch& batch, const HostBatch& host, ScheduleKind schedule,
                       std::span<const KvView> kv, int first_layer = 0, View given = {});

  // Head of the batch's head rows on forward()'s result.
  Status head(Ctx& ctx, const Batch& batch, ScheduleKind schedule, const View& hidden,
              const HeadWork& work);

  const RankPlan& plan() const { return plan_; }

 private:
  Status draw(Ctx& ctx, const Site& site, const HeadWork& work, const HeadArgs& head,
              int64_t row_begin, const View& c, const View& owner);

  const Model& model_;
  RopeCache& rope_;
  RankPlan plan_;
  std::vector<Fault> faults_;
};

}  // namespace sb
