// Architecture: what a Gemma 4 text model is, read from config.json by our own parser (never
// through a framework object) and checked; what the chain cannot run is refused here, by key and
// value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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
  int rotary_pairs =
      0;  // pairs (i, i + head_dim/2) with i below this rotate; the others pass through
};

// The vision tower as config.json describes it. Recognised by name and shape, not run.
struct VisionSpec {
  int64_t hidden = 0, intermediate = 0, position_rows = 0;
  int layers = 0, heads = 0, head_dim = 0, patch = 0, pooling = 0;
  bool standardize = false;
  double rope_theta = 0;
  int soft_tokens = 0;  // budget of soft tokens an image; 0: the config does not say
  friend bool operator==(const VisionSpec&, const VisionSpec&) = default;
};

// Special ids. −1: the config does not name it.
struct TokenSpec {
  int64_t pad = -1, bos = -1, image = -1, begin_image = -1, end_image = -1, audio = -1, video = -1;
  std::vector<int64_t> eos;       // of generation_config.json if there is one, else of config.json
  std::vector<int64_t> suppress;  // ids an engine removes before the log-probability is taken
  bool from_generation_config = false;
  friend bool operator==(const TokenSpec&, const TokenSpec&) = default;
};

struct Architecture {
  int64_t hidden = 0, intermediate = 0, vocab = 0, max_position = 0;
  int num_heads = 0;
  int window = 0;      // sliding: a query sees itself and window − 1 keys before it
  int segment = 4096;  // keys per segment of a global layer; part of the contract's shape
  float rms_eps = 1e-6f;
  float softcap = 30.0f;
  AttentionSpec sliding, global;
  std::vector<LayerType> layers;      // one per layer, in order
  bool has_vision = false;            // a vision tower is described; recognised, not run yet
  bool bidirectional_vision = false;  // use_bidirectional_attention = "vision"; no effect on text
  VisionSpec vision;                  // meaningful if has_vision
  TokenSpec tokens;
  // Keys the parser does not know, with their JSON values. They are no refusal (a newer framework
  // writes new harmless keys) but part of the fingerprint, and load_model warns of each.
  std::vector<std::pair<std::string, std::string>> unknown_keys;

  int num_layers() const { return static_cast<int>(layers.size()); }
  const AttentionSpec& attention(LayerType t) const {
    return t == LayerType::kSliding ? sliding : global;
  }
  const AttentionSpec& attention(int layer) const { return attention(layers[layer]); }
  // R(√hidden), the factor of token embeddings: 73.5 at 5376, whatever dtype was loaded.
  float embedding_scale() const;
  int64_t text_parameters() const;
  int64_t vision_parameters() const;  // tower and projection; 0 without vision
};

// Parses config.json text: the flat form, the nested {"text_config": …} form, and what
// transformers ≥ 5.15 writes (per_layer_config). `where` names the source in messages.
Result<Architecture> parse_config(const std::string& json, const std::string& where);

// Adds what generation_config.json says about eos and suppressed ids.
Status parse_generation_config(const std::string& json, const std::string& where,
                               Architecture& arch);

// config.json of an architecture in the nested form that the published checkpoint has; keys the
// architecture does not carry take the published values. parse_config reads it back.
std::string write_config(const Architecture& arch);

// A window W as other frameworks write it: (left, right) = (W − 1, 0), the query itself not
// counted.
constexpr std::pair<int, int> window_left_right(int window) { return {window - 1, 0}; }
Result<int> window_from_left_right(int64_t left, int64_t right);

}  // namespace sb
