// Saved: what one packed training step keeps for its backward pass, in device memory of its own.
// kAll keeps every rounded boundary; kLayerInputs keeps what enters each layer and recomputes the
// rest from there (Session::forward_from), with equal bits, because a layer's bits depend on its
// input alone.
#pragma once

#include <map>
#include <utility>

#include "samebits/base/arena.h"
#include "samebits/ops/ctx.h"

namespace sb {

enum class KeepPolicy : uint8_t { kAll, kLayerInputs };

class Saved : public SavedSink {
 public:
  Saved(Device& device, KeepPolicy policy) : arena_(device), policy_(policy) {}

  // Boundaries of the head are never kept: logits are too large, (m, S) stand for them.
  bool keeps(Boundary b) const override;
  bool keeps_sums() const override { return true; }
  Status keep(Ctx& ctx, Boundary b, const View& value) override;
  Status keep_lse(Ctx& ctx, int layer, const View& lse) override;
  Status keep_max_sum(Ctx& ctx, int64_t row, const View& ms) override;

  // Empty where nothing was kept. Valid until clear().
  View find(Boundary b) const;
  View lse(int layer) const;
  View max_sum(int64_t row) const;  // of the chunk of head rows that begins at `row`
  // What layer i starts from: the embedding or the output of the layer before.
  View layer_input(int layer) const;
  size_t bytes() const { return arena_.high_water_bytes(); }
  void clear();

 private:
  Result<View> copy(Ctx& ctx, const View& value);
  Arena arena_;
  KeepPolicy policy_;
  std::map<std::pair<Tap, int>, View> values_;
  std::map<int, View> lse_;
  std::map<int64_t, View> max_sum_;
};

}  // namespace sb
