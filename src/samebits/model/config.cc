// parse_config: from config.json text to a checked Architecture. The file is read by this code and
// never through a framework object: those fill in defaults (a head size of hidden / heads, a window
// of 512) that belong to other models. A key that decides arithmetic and is missing is an error; a
// switch of the format that is absent has the format's own default, named at its line.
#include <cmath>
#include <nlohmann/json.hpp>

#include "samebits/base/bf16.h"
#include "samebits/model/config_reader.h"
#include "samebits/model/json_strict.h"

namespace sb {
namespace {

using nlohmann::json;

// Bounds keep every product of two sizes far inside int64.
constexpr int64_t kMaxWidth = 1 << 20, kMaxVocab = 1 << 26;
constexpr int64_t kMaxPosition = 1 << 20;  // the rotary functions take angles below 2^20
constexpr int64_t kMaxLayers = 4096;

constexpr std::initializer_list<const char*> kBookkeeping = {"_name_or_path",
                                                             "architectures",
                                                             "chunk_size_feed_forward",
                                                             "id2label",
                                                             "initializer_range",
                                                             "is_encoder_decoder",
                                                             "label2id",
                                                             "model_type",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "problem_type",
                                                             "return_dict",
                                                             "transformers_version",
                                                             "use_cache",
                                                             "auto_map"};

void read_layers(ConfigReader& text, Architecture& arch) {
  const int64_t n = text.integer("num_hidden_layers", 1, kMaxLayers);
  const json* types = text.find("layer_types");
  if (!types || !types->is_array()) {
    text.broken("layer_types",
                types ? "is " + shown(*types) + ", but must be a list of one name a layer"
                      : std::string("is missing; a 5:1 pattern is never assumed"));
    return;
  }
  for (const json& t : *types) {
    const std::string name = t.is_string() ? t.get<std::string>() : std::string();
    if (name != "sliding_attention" && name != "full_attention") {
      text.refused("layer_types", "names " + shown(t) +
                                      "; known are \"sliding_attention\" and \"full_attention\"");
      return;
    }
    arch.layers.push_back(name == "full_attention" ? LayerType::kGlobal : LayerType::kSliding);
  }
  if (n != 0 && n != arch.num_layers()) {
    text.broken("layer_types", "names " + std::to_string(arch.num_layers()) +
                                   " layers, num_hidden_layers " + std::to_string(n));
  } else if (!arch.layers.empty() && arch.layers.back() != LayerType::kGlobal) {
    text.refused("layer_types",
                 "ends with \"sliding_attention\": transformers silently turns the "
                 "last layer into full attention, so the two would not be one model");
  }
}

void read_window(ConfigReader& text, Architecture& arch) {
  const json* v = text.find("sliding_window");
  if (v && v->is_array()) {
    text.broken("sliding_window",
                "is " + shown(*v) +
                    "; a (left, right) pair of another framework counts the query "
                    "apart: (W − 1, 0) there is the number W here");
    return;
  }
  arch.window = static_cast<int>(text.integer("sliding_window", 1, kMaxPosition));
}

void read_segment(ConfigReader& top, ConfigFaults& faults, Architecture& arch) {
  const json* own = top.find("samebits");
  if (!own) return;
  if (!own->is_object()) return top.broken("samebits", "is " + shown(*own) + ", not an object");
  ConfigReader r(*own, "samebits.", faults);
  arch.segment = static_cast<int>(r.integer("segment", 64, kMaxPosition));
  if (arch.segment % 64 != 0) {
    r.refused("segment", "is " + std::to_string(arch.segment) +
                             "; a segment is a whole number of 64-key blocks");
  }
  std::vector<std::pair<std::string, std::string>> extra;
  r.unknown(extra);
  for (const auto& [key, value] : extra) faults.broken.push_back("key " + key + " is not known");
}

void read_token_ids(ConfigReader& text, ConfigReader* outer, Architecture& arch) {
  auto id = [&](const char* key, int64_t& to) {
    const auto inner = text.optional_integer(key, 0, kMaxVocab);
    const auto top = outer ? outer->optional_integer(key, 0, kMaxVocab) : std::nullopt;
    to = top ? *top : inner.value_or(-1);
  };
  TokenSpec& t = arch.tokens;
  id("pad_token_id", t.pad);
  id("bos_token_id", t.bos);
  id("image_token_id", t.image);
  id("boi_token_id", t.begin_image);
  id("eoi_token_id", t.end_image);
  id("audio_token_id", t.audio);
  id("video_token_id", t.video);
  ConfigReader& r = outer && outer->has("eos_token_id") ? *outer : text;
  text.has("eos_token_id");
  if (const json* eos = r.find("eos_token_id")) {
    const json list = eos->is_array() ? *eos : json::array({*eos});
    for (const json& e : list) {
      if (!e.is_number_unsigned() || e.get<uint64_t>() > uint64_t{kMaxVocab}) {
        return r.broken("eos_token_id", "holds " + shown(e) + ", which is no token id");
      }
      t.eos.push_back(e.get<int64_t>());
    }
  }
}

void read_text(ConfigReader& text, ConfigFaults& faults, Architecture& arch) {
  text.ignore(kBookkeeping);
  text.ignore({"vocab_size_per_layer_input"});  // sizes per-layer inputs, which are off
  if (const std::string type = text.text("model_type"); !type.empty() && type != "gemma4_text") {
    text.refused("model_type", "is \"" + type + "\"; the text model known here is \"gemma4_text\"");
  }
  arch.hidden = text.integer("hidden_size", 2, kMaxWidth);
  arch.intermediate = text.integer("intermediate_size", 1, kMaxWidth);
  arch.vocab = text.integer("vocab_size", 1, kMaxVocab);
  arch.max_position = text.integer("max_position_embeddings", 1, kMaxPosition);
  arch.rms_eps = static_cast<float>(text.positive("rms_norm_eps"));
  arch.softcap = static_cast<float>(text.positive("final_logit_softcapping"));
  if (!std::isfinite(arch.softcap) || (arch.softcap == 0 && faults.broken.empty())) {
    text.refused("final_logit_softcapping", "is beyond fp32");
  }
  if (!std::isfinite(arch.rms_eps) || (arch.rms_eps == 0 && faults.broken.empty())) {
    text.refused("rms_norm_eps", "is beyond fp32");
  }
  read_layers(text, arch);
  read_window(text, arch);
  read_heads(text, arch);
  read_rope(text, faults, arch);
  read_bidirectional(text, arch);
  refuse_features(text);
}

}  // namespace

Result<Architecture> parse_config(const std::string& text, const std::string& where) {
  SB_TRY(config, parse_json_strict(text, where));
  if (!config.is_object()) {
    return refuse(Code::kBrokenData, "read " + where,
                  "it holds " + shown(config) + ", not an object");
  }
  Architecture arch;
  ConfigFaults faults;
  ConfigReader top(config, "", faults);
  if (const json* inner = top.find("text_config"); !inner) {
    read_text(top, faults, arch);
    read_tied(top, nullptr);
    read_token_ids(top, nullptr, arch);
    for (const char* key : {"vision_config", "audio_config"}) {
      top.forbid(key, "a config with this part must hold the text model under text_config");
    }
  } else if (!inner->is_object()) {
    top.broken("text_config", "is " + shown(*inner) + ", not an object");
  } else {
    ConfigReader body(*inner, "text_config.", faults);
    top.ignore(kBookkeeping);
    if (const std::string type = top.text("model_type"); !type.empty() && type != "gemma4") {
      top.refused("model_type", "is \"" + type + "\"; known here is \"gemma4\"");
    }
    read_text(body, faults, arch);
    read_tied(body, &top);
    read_token_ids(body, &top, arch);
    top.ignore({"boa_token_id", "eoa_token_id", "eoa_token_index", "vision_config"});
    top.forbid("quantization_config", "weights must be plain bf16");
    top.forbid("audio_config", "an audio tower has no contract");
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (const json* v = top.find(key); v && *v != "bfloat16") {
        top.refused(key, "is " + shown(*v) + "; weights are defined for bfloat16");
      }
    }
    arch.vision.soft_tokens =
        static_cast<int>(top.optional_integer("vision_soft_tokens_per_image", 1, 1120).value_or(0));
    body.unknown(arch.unknown_keys);
    read_vision(config, faults, arch);
  }
  read_segment(top, faults, arch);
  top.unknown(arch.unknown_keys);
  if (!faults.none()) return faults.refusal(where);
  return arch;
}

float Architecture::embedding_scale() const {
  // The double root rounds to the same fp32 as a root taken in fp32 (53 ≥ 2·24 + 2 bits).
  return rounded(static_cast<float>(std::sqrt(static_cast<double>(hidden))));
}

int64_t Architecture::text_parameters() const {
  int64_t n = vocab * hidden + hidden;
  for (int i = 0; i < num_layers(); ++i) {
    const AttentionSpec& a = attention(i);
    const int64_t q = int64_t{num_heads} * a.head_dim, kv = int64_t{a.num_kv_heads} * a.head_dim;
    const int64_t kv_projections = layers[i] == LayerType::kSliding ? 2 : 1;
    n +=
        hidden * (2 * q + kv_projections * kv + 3 * intermediate) + 2 * a.head_dim + 4 * hidden + 1;
  }
  return n;
}

}  // namespace sb
