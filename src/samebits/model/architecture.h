// Architecture: what a Gemma 4 text model is, read from config.json by our own parser (never through
// a framework object) and checked; what the chain cannot run is refused here, by key and value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebits/base/result.h"

namespace sb {

enum class LayerType : uint8_t { kSliding, kGlobal };
constexpr const char* layer_type_name(LayerType t) {
  return t == LayerType::kSliding ? "sliding" : "global";
}

// Heads and rotary embedding of one layer type. head_dim and rotary_pairs count elements and pairs.
struct AttentionSpec {
  int num_kv_heads = 0;
  int head_dim = 0;
  double rope_theta = 0;
  int rotary_pairs = 0;  // pairs (i, i + head_dim/2) with i below this rotate; the others pass through
};

struct Architecture {
  int64_t hidden = 0, intermediate = 0, vocab = 0, max_position = 0;
  int num_heads = 0;
  int window = 0;       // sliding: a query sees itself and window − 1 keys before it
  int segment = 4096;   // keys per segment of a global layer; part of the contract's shape
  float rms_eps = 1e-6f;
  float softcap = 30.0f;
  AttentionSpec sliding, global;
  std::vector<LayerType> layers;  // one per layer, in order
  bool has_vision = false;        // a vision tower is described; recognised, not run yet

  int num_layers() const { return static_cast<int>(layers.size()); }
  const AttentionSpec& attention(LayerType t) const {
    return t == LayerType::kSliding ? sliding : global;
  }
  const AttentionSpec& attention(int layer) const { return attention(layers[layer]); }
  int64_t text_parameters() const;
};

// Parses config.json text: the flat form, the nested {"text_config": …} form, and what
// transformers ≥ 5.15 writes (per_layer_config). `where` names the source in messages.
Result<Architecture> parse_config(const std::string& json, const std::string& where);

}  // namespace sb
