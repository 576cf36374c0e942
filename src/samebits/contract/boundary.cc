#include "samebits/contract/boundary.h"

#include <charconv>

namespace sb {
namespace {

// clang-format off
constexpr const char* kNames[kNumTaps] = {
    "embed",
    "attn.norm",
    "attn.q.acc", "attn.q", "attn.k.acc", "attn.k", "attn.v.acc", "attn.v",
    "attn.q_norm", "attn.k_norm", "attn.v_norm", "attn.q_rope", "attn.k_rope",
    "attn.ctx", "attn.ctx.acc", "attn.o.acc", "attn.o", "attn.post_norm", "attn.resid",
    "mlp.norm", "mlp.gate.acc", "mlp.gate", "mlp.up.acc", "mlp.up", "mlp.gelu", "mlp.act",
    "mlp.down.acc", "mlp.down", "mlp.post_norm", "mlp.resid",
    "out",
    "final_norm", "head.logit", "head.softcap", "head.lse", "logp",
};
// clang-format on

}  // namespace

bool is_acc(Tap t) { return std::string_view(kNames[static_cast<int>(t)]).ends_with(".acc"); }

std::string boundary_name(Boundary b) {
  const char* name = kNames[static_cast<int>(b.tap)];
  if (!is_layer_tap(b.tap)) return name;
  return "layers." + std::to_string(b.layer) + "." + name;
}

std::optional<Boundary> parse_boundary(std::string_view name) {
  const std::string_view whole = name;
  Boundary b;
  constexpr std::string_view kPrefix = "layers.";
  if (name.starts_with(kPrefix)) {
    name.remove_prefix(kPrefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), b.layer);
    const size_t used = static_cast<size_t>(end - name.data());
    if (error != std::errc() || b.layer < 0 || used >= name.size() || name[used] != '.') return {};
    name.remove_prefix(used + 1);
  }
  for (int t = 0; t < kNumTaps; ++t) {
    if (name == kNames[t] && is_layer_tap(Tap(t)) == (b.layer >= 0)) {
      b.tap = Tap(t);
      // One spelling each: "layers.01.out" and "layers.-0.out" are no names.
      if (boundary_name(b) != whole) return {};
      return b;
    }
  }
  return {};
}

int64_t boundary_width(const Architecture& arch, Boundary b) {
  const auto heads = [&](bool query) {
    const AttentionSpec& spec = arch.attention(arch.layers[b.layer]);
    return int64_t{query ? arch.num_heads : spec.num_kv_heads} * spec.head_dim;
  };
  switch (b.tap) {
    case Tap::kAttnQAcc:
    case Tap::kAttnQ:
    case Tap::kAttnQNorm:
    case Tap::kAttnQRope:
    case Tap::kAttnCtx:
    case Tap::kAttnCtxAcc: return heads(true);
    case Tap::kAttnKAcc:
    case Tap::kAttnK:
    case Tap::kAttnVAcc:
    case Tap::kAttnV:
    case Tap::kAttnKNorm:
    case Tap::kAttnVNorm:
    case Tap::kAttnKRope: return heads(false);
    case Tap::kMlpGateAcc:
    case Tap::kMlpGate:
    case Tap::kMlpUpAcc:
    case Tap::kMlpUp:
    case Tap::kMlpGelu:
    case Tap::kMlpAct: return arch.intermediate;
    case Tap::kHeadLogit:
    case Tap::kHeadSoftcap: return arch.vocab;
    case Tap::kHeadLse:
    case Tap::kLogp: return 1;
    default: return arch.hidden;
  }
}

std::vector<Boundary> all_boundaries(const Architecture& arch, bool with_acc) {
  std::vector<Boundary> out;
  auto add = [&](int first, int last, int layer) {
    for (int t = first; t <= last; ++t) {
      const Tap tap = Tap(t);
      const bool global = layer >= 0 && arch.layers[layer] == LayerType::kGlobal;
      if (global && (tap == Tap::kAttnV || tap == Tap::kAttnVAcc)) continue;
      if (!with_acc && is_acc(tap)) continue;
      out.push_back({tap, layer});
    }
  };
  add(int(Tap::kEmbed), int(Tap::kEmbed), -1);
  for (int i = 0; i < arch.num_layers(); ++i) add(int(Tap::kAttnNorm), int(Tap::kLayerOut), i);
  add(int(Tap::kFinalNorm), int(Tap::kLogp), -1);
  return out;
}

}  // namespace sb
