// Plausible causes of a first difference: what has caused it in public reports. Only hints.
#include "samebits/gate/compare.h"

namespace sb {
namespace {

bool is_paged(const std::string& schedule) { return !schedule.empty() && schedule != "train"; }

std::string attention_cause(int64_t lowest_pos, bool one_side_paged) {
  if (lowest_pos == 0) return "softmax scale (1.0, not 1/√D), or other keys and values";
  const std::string p = std::to_string(lowest_pos);
  std::string out = "positions below " + p +
                    " agree, so a key-visibility rule that begins to matter at " + p +
                    ": window off by one, or a segment, page or chunk edge";
  if (one_side_paged) out += "; one side is paged, so also its page table or a stale cache entry";
  return out;
}

std::string rope_cause(int64_t lowest_pos) {
  if (lowest_pos == 0) return "a position offset, or pass-through dimensions that are not copied";
  if (lowest_pos == 1) {
    return "RoPE (position 0 is not rotated and agrees): theta, pairing (i, i + D/2) or the "
           "exponent's "
           "denominator";
  }
  return "RoPE at position " + std::to_string(lowest_pos) +
         " and beyond: table precision, or a table that was cast or built in blocks";
}

std::string gemm_cause(Tap tap) {
  const bool sharded = tap == Tap::kAttnOAcc || tap == Tap::kMlpDownAcc;
  return std::string(
             "reduction order of this matrix product: split-K, stream-K or another tile "
             "order along K") +
         (sharded ? ", or TP partial sums added in another tree or in bf16" : "") +
         "; or a kernel other than the one requested";
}

}  // namespace

std::string likely_cause(Boundary first, int64_t lowest_pos, const std::string& schedule_a,
                         const std::string& schedule_b) {
  const bool one_side_paged = is_paged(schedule_a) != is_paged(schedule_b);
  std::string cause;
  switch (first.tap) {
    case Tap::kEmbed:
      cause = "embedding scale (bf16 √hidden whatever the load dtype), or a stale embedding table";
      break;
    case Tap::kAttnNorm:
    case Tap::kAttnPostNorm:
    case Tap::kMlpNorm:
    case Tap::kMlpPostNorm:
    case Tap::kFinalNorm:
    case Tap::kAttnQNorm:
    case Tap::kAttnKNorm:
      cause =
          "RMSNorm: weight convention (w, not 1 + w), cast before the weight, order or dtype of "
          "the sum of squares";
      break;
    case Tap::kAttnVNorm:
      cause =
          "V's norm left out, or V taken after k_norm or RoPE (global layers use the raw K "
          "projection)";
      break;
    case Tap::kAttnQAcc:
    case Tap::kAttnKAcc:
    case Tap::kAttnVAcc:
    case Tap::kAttnOAcc:
    case Tap::kMlpGateAcc:
    case Tap::kMlpUpAcc:
    case Tap::kMlpDownAcc: cause = gemm_cause(first.tap); break;
    case Tap::kAttnQ:
    case Tap::kAttnK:
    case Tap::kAttnV:
    case Tap::kAttnO:
    case Tap::kMlpGate:
    case Tap::kMlpUp:
    case Tap::kMlpDown:
      cause =
          "the rounding to bf16 if this boundary's .acc agrees, else the reduction order of the "
          "matrix product (trace .acc to tell)";
      break;
    case Tap::kAttnQRope:
    case Tap::kAttnKRope: cause = rope_cause(lowest_pos); break;
    case Tap::kAttnCtxAcc:
    case Tap::kAttnCtx: cause = attention_cause(lowest_pos, one_side_paged); break;
    case Tap::kAttnResid:
    case Tap::kMlpResid: cause = "the residual added or kept in another dtype (bf16 here)"; break;
    case Tap::kMlpGelu: cause = "the activation: GELU tanh form, not erf, not SiLU"; break;
    case Tap::kMlpAct: cause = "GELU not rounded to bf16 before the product with up"; break;
    case Tap::kLayerOut: cause = "layer_scalar left out, or not the checkpoint's"; break;
    case Tap::kHeadLogit:
      cause = "the head: logits in bf16, another reduction order, or a stale or untied head weight";
      break;
    case Tap::kHeadSoftcap:
      cause = "softcap left out, applied twice or computed in bf16, or the temperature";
      break;
    case Tap::kHeadLse:
      cause = "the sum over the vocabulary: tile order, padded columns or suppressed ids";
      break;
    case Tap::kLogp:
      cause = "the selected token: shifted by one, or the temperature applied twice";
      break;
  }
  return cause.empty() ? cause : "likely " + cause;
}

}  // namespace sb
