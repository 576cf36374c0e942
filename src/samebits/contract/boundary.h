// Boundaries: the named tensors between two operators, where bits are compared. This is the one
// list of their names and of their causal order; traces, comparisons, faults and records all use
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/model/architecture.h"

namespace sb {

// In causal order within a layer. A value whose name ends in Acc is the fp32 result before rounding
// (".acc"): bf16 hides most order errors, so operators are accepted on these bits too. A GEMM's
// .acc stands before its rounded value; attention's behind it, so that a wrong set of keys is
// reported as attn.ctx and only what rounding hides as attn.ctx.acc.
// clang-format off
enum class Tap : uint8_t {
  kEmbed,
  kAttnNorm,
  kAttnQAcc, kAttnQ, kAttnKAcc, kAttnK, kAttnVAcc, kAttnV,
  kAttnQNorm, kAttnKNorm, kAttnVNorm, kAttnQRope, kAttnKRope,
  kAttnCtx, kAttnCtxAcc, kAttnOAcc, kAttnO, kAttnPostNorm, kAttnResid,
  kMlpNorm, kMlpGateAcc, kMlpGate, kMlpUpAcc, kMlpUp, kMlpGelu, kMlpAct,
  kMlpDownAcc, kMlpDown, kMlpPostNorm, kMlpResid,
  kLayerOut,
  kFinalNorm, kHeadLogit, kHeadSoftcap, kHeadLse, kLogp,
};
// clang-format on
inline constexpr int kNumTaps = static_cast<int>(Tap::kLogp) + 1;

struct Boundary {
  Tap tap = Tap::kEmbed;
  int layer = -1;  // −1 outside layers
  friend constexpr bool operator==(Boundary, Boundary) = default;
};

constexpr bool is_layer_tap(Tap t) { return t >= Tap::kAttnNorm && t <= Tap::kLayerOut; }
bool is_acc(Tap t);
// fp32 rather than bf16: what is not rounded, and the head.
inline bool is_fp32(Tap t) { return is_acc(t) || t >= Tap::kHeadLogit; }
// Held by scored rows alone, instead of every row.
constexpr bool is_per_scored_row(Tap t) { return t >= Tap::kHeadLogit; }

// "layers.3.mlp.down.acc", "head.logit", …
std::string boundary_name(Boundary b);
std::optional<Boundary> parse_boundary(std::string_view name);

// Position in causal order; smaller comes first.
constexpr int boundary_order(Boundary b, int num_layers) {
  const int t = static_cast<int>(b.tap), first = static_cast<int>(Tap::kAttnNorm);
  const int per_layer = static_cast<int>(Tap::kLayerOut) - first + 1;
  if (b.tap == Tap::kEmbed) return 0;
  if (is_layer_tap(b.tap)) return 1 + b.layer * per_layer + (t - first);
  return 1 + num_layers * per_layer + (t - static_cast<int>(Tap::kFinalNorm));
}

// Elements of one whole row, all ranks' shards together.
int64_t boundary_width(const Architecture& arch, Boundary b);

// Every boundary of a model in causal order (global layers have no attn.v).
std::vector<Boundary> all_boundaries(const Architecture& arch, bool with_acc);

}  // namespace sb
