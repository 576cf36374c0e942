// Parts of parse_config: heads of the two layer types in both known spellings, rotary parameters,
// and the vision tower's description.
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "samebits/model/config_reader.h"
#include "samebits/model/rope_table.h"

namespace sb {
namespace {

using nlohmann::json;

constexpr int64_t kMaxHeads = 4096, kMaxHeadDim = 4096;

struct HeadPair {
  int64_t kv = 0, dim = 0;
  friend bool operator==(HeadPair, HeadPair) = default;
};

// transformers ≥ 5.15: {"05": {"head_dim": 512, "num_key_value_heads": 4}, …}. The format leaves
// out a field that equals the top-level one, so here, and only here, an absent field means that
// value.
void read_per_layer(ConfigReader& text, const json& table, HeadPair base, Architecture& arch) {
  if (!table.is_object()) return text.broken("per_layer_config", "is " + shown(table));
  std::map<int, HeadPair> layers;
  for (const auto& [name, fields] : table.items()) {
    int index = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const std::string key = "per_layer_config." + name;
    if (error != std::errc() || end != name.data() + name.size() || index < 0 ||
        index >= arch.num_layers()) {
      return text.broken(key, "is no layer number below " + std::to_string(arch.num_layers()));
    }
    if (!fields.is_object()) return text.broken(key, "is " + shown(fields) + ", not an object");
    HeadPair at = base;
    for (const auto& [field, value] : fields.items()) {
      int64_t* to = field == "head_dim"              ? &at.dim
                    : field == "num_key_value_heads" ? &at.kv
                                                     : nullptr;
      if (!to) {
        return text.refused(key + "." + field, "is " + shown(value) +
                                                   "; layers may differ only in head_dim and "
                                                   "num_key_value_heads");
      }
      const bool in_range = value.is_number_unsigned() && value.get<uint64_t>() >= 1 &&
                            value.get<uint64_t>() <= uint64_t{kMaxHeadDim};
      if (!in_range) return text.broken(key + "." + field, "is " + shown(value));
      *to = value.get<int64_t>();
    }
    if (!layers.emplace(index, at).second)
      return text.broken(key, "names that layer a second time");
  }
  HeadPair global;
  for (int i = 0; i < arch.num_layers(); ++i) {
    const HeadPair at = layers.contains(i) ? layers[i] : base;
    const bool is_global = arch.layers[i] == LayerType::kGlobal;
    if (is_global && global.dim == 0) global = at;
    if (at != (is_global ? global : base)) {
      return text.refused(
          "per_layer_config." + std::to_string(i),
          "makes layer " + std::to_string(i) +
              " differ from the others of its type in layer_types; one size a type can run");
    }
  }
  if (global.dim == 0) return;  // layer_types was faulty and has been reported
  const int kv = static_cast<int>(global.kv), dim = static_cast<int>(global.dim);
  auto agree = [&](const char* key, int to, int found) {
    if (to != 0 && to != found) {
      text.refused(
          key, "is " + std::to_string(to) + ", but per_layer_config says " + std::to_string(found));
    }
  };
  agree("num_global_key_value_heads", arch.global.num_kv_heads, kv);
  agree("global_head_dim", arch.global.head_dim, dim);
  arch.global.num_kv_heads = kv;
  arch.global.head_dim = dim;
}

void check_heads(ConfigReader& text, const Architecture& arch) {
  for (LayerType t : {LayerType::kSliding, LayerType::kGlobal}) {
    const AttentionSpec& a = arch.attention(t);
    const bool sliding = t == LayerType::kSliding;
    const char* common = text.has("per_layer_config") ? "per_layer_config" : nullptr;
    if (a.num_kv_heads > 0 && arch.num_heads > 0 && arch.num_heads % a.num_kv_heads != 0) {
      text.refused(sliding  ? "num_key_value_heads"
                   : common ? common
                            : "num_global_key_value_heads",
                   "sets num_key_value_heads to " + std::to_string(a.num_kv_heads) +
                       ", which does not divide num_attention_heads, " +
                       std::to_string(arch.num_heads));
    }
    if (a.head_dim % 2 != 0) {
      text.refused(sliding ? "head_dim" : "global_head_dim",
                   "sets head_dim to " + std::to_string(a.head_dim) +
                       "; rotary pairs (i, i + D/2) need an even D");
    }
  }
}

}  // namespace

void read_heads(ConfigReader& text, Architecture& arch) {
  arch.num_heads = static_cast<int>(text.integer("num_attention_heads", 1, kMaxHeads));
  const HeadPair base{text.integer("num_key_value_heads", 1, kMaxHeads),
                      text.integer("head_dim", 2, kMaxHeadDim)};
  arch.sliding.num_kv_heads = static_cast<int>(base.kv);
  arch.sliding.head_dim = static_cast<int>(base.dim);
  const json* per_layer = text.find("per_layer_config");
  auto global = [&](const char* key, int64_t lo, int64_t hi) {
    return static_cast<int>(per_layer ? text.optional_integer(key, lo, hi).value_or(0)
                                      : text.integer(key, lo, hi));
  };
  arch.global.num_kv_heads = global("num_global_key_value_heads", 1, kMaxHeads);
  arch.global.head_dim = global("global_head_dim", 2, kMaxHeadDim);
  if (per_layer) read_per_layer(text, *per_layer, base, arch);
  check_heads(text, arch);
}

void read_rope(ConfigReader& text, ConfigFaults& faults, Architecture& arch) {
  const json* both = text.find("rope_parameters");
  if (!both || !both->is_object()) {
    return text.broken("rope_parameters", both ? "is " + shown(*both) : std::string("is missing"));
  }
  ConfigReader types(*both, text.path("rope_parameters."), faults);
  for (LayerType t : {LayerType::kSliding, LayerType::kGlobal}) {
    const bool sliding = t == LayerType::kSliding;
    const char* key = sliding ? "sliding_attention" : "full_attention";
    const json* one = types.find(key);
    if (!one || !one->is_object()) {
      types.broken(key, one ? "is " + shown(*one) : std::string("is missing"));
      continue;
    }
    ConfigReader r(*one, types.path(std::string(key) + "."), faults);
    AttentionSpec& a = sliding ? arch.sliding : arch.global;
    const std::string expected = sliding ? "default" : "proportional";
    if (const std::string type = r.text("rope_type"); !type.empty() && type != expected) {
      r.refused("rope_type",
                "is \"" + type + "\"; the contract of this layer type is \"" + expected + "\"");
    }
    a.rope_theta = r.positive("rope_theta");
    for (const char* scale : {"factor", "attention_factor"}) {
      if (const json* v = r.find(scale); v && *v != json(1.0)) {
        r.refused(scale, "is " + shown(*v) + "; only 1 has a contract");
      }
    }
    double share = 1.0;  // of pairs that rotate
    if (sliding) {
      if (const json* v = r.find("partial_rotary_factor"); v && *v != json(1.0)) {
        r.refused("partial_rotary_factor",
                  "is " + shown(*v) + "; sliding layers rotate every pair");
      }
    } else {
      share = r.positive("partial_rotary_factor");
    }
    a.rotary_pairs = share <= 1.0 ? static_cast<int>(share * a.head_dim / 2) : 0;
    std::vector<std::pair<std::string, std::string>> extra;
    r.unknown(extra);
    for (const auto& [name, value] : extra) {
      faults.refused.push_back("key " + name + " is " + value +
                               "; no contract has such a parameter");
    }
    if (a.head_dim == 0 || a.rope_theta == 0) continue;  // reported where it was read
    if (a.rotary_pairs == 0) {
      r.refused("partial_rotary_factor",
                "rotates 0 of " + std::to_string(a.head_dim / 2) + " pairs");
    } else if (auto f = rope_inv_freq(a.rope_theta, a.head_dim, a.rotary_pairs); !f) {
      r.refused("rope_theta", f.error().reasons[0] + " (" + f.error().asked + ")");
    }
  }
  std::vector<std::pair<std::string, std::string>> extra;
  types.unknown(extra);
  for (const auto& [name, value] : extra) {
    faults.refused.push_back("key " + name + " is " + value + "; no layer type has that name");
  }
}

void read_vision(const json& config, ConfigFaults& faults, Architecture& arch) {
  const auto it = config.find("vision_config");
  if (it == config.end() || it->is_null()) return;
  if (!it->is_object()) {
    faults.broken.push_back("key vision_config is " + shown(*it) + ", not an object");
    return;
  }
  arch.has_vision = true;
  ConfigReader r(*it, "vision_config.", faults);
  VisionSpec& v = arch.vision;
  v.hidden = r.integer("hidden_size", 1, 1 << 20);
  v.intermediate = r.integer("intermediate_size", 1, 1 << 20);
  v.position_rows = r.integer("position_embedding_size", 1, 1 << 24);
  v.layers = static_cast<int>(r.integer("num_hidden_layers", 1, 4096));
  v.heads = static_cast<int>(r.integer("num_attention_heads", 1, kMaxHeads));
  v.head_dim = static_cast<int>(r.integer("head_dim", 2, kMaxHeadDim));
  v.patch = static_cast<int>(r.integer("patch_size", 1, 4096));
  v.pooling = static_cast<int>(r.integer("pooling_kernel_size", 1, 64));
  if (const auto kv = r.optional_integer("num_key_value_heads", 1, kMaxHeads);
      kv && *kv != v.heads) {
    r.refused("num_key_value_heads", "is " + std::to_string(*kv) + ", the tower has " +
                                         std::to_string(v.heads) + " query heads");
  }
  if (const auto n = r.optional_integer("default_output_length", 1, 1120)) {
    if (v.soft_tokens != 0 && v.soft_tokens != *n) {
      r.broken("default_output_length", "is " + std::to_string(*n) +
                                            ", but vision_soft_tokens_per_image is " +
                                            std::to_string(v.soft_tokens));
    }
    v.soft_tokens = static_cast<int>(*n);
  }
  r.flag("use_clipped_linears", false, false, "clipped linears have no contract");
  if (const json* s = r.find("standardize"); s && s->is_boolean()) v.standardize = s->get<bool>();
  if (const json* rope = r.find("rope_parameters"); rope && rope->is_object()) {
    const auto theta = rope->find("rope_theta");
    if (theta != rope->end() && theta->is_number()) v.rope_theta = theta->get<double>();
  }
  r.flag("attention_bias", false, false, "projections with a bias have no contract");
  r.zero("attention_dropout", false, "dropout makes runs differ by design");
  r.ignore({"_name_or_path", "architectures", "chunk_size_feed_forward", "dtype", "torch_dtype",
            "id2label", "initializer_range", "is_encoder_decoder", "label2id",
            "max_position_embeddings", "model_type", "output_attentions", "output_hidden_states",
            "problem_type", "return_dict"});
  for (const char* key : {"hidden_activation", "rms_norm_eps"}) {
    if (!r.has(key)) r.broken(key, "is missing");
  }
  if (const json* act = r.find("hidden_activation"); act && *act != "gelu_pytorch_tanh") {
    r.refused("hidden_activation", "is " + shown(*act) + "; the tower's is gelu_pytorch_tanh");
  }
  if (const json* eps = r.find("rms_norm_eps"); eps && *eps != json(1e-6)) {
    r.refused("rms_norm_eps", "is " + shown(*eps) + "; the tower's is 1e-06");
  }
  r.unknown(arch.unknown_keys);
}

}  // namespace sb
