#include "samebits/model/fingerprint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/model/json_strict.h"
#include "samebits/model/rope_table.h"
#include "samebits/model/tensor_names.h"

namespace sb {
namespace {

using nlohmann::json;  // objects keep their keys sorted

std::string hex32(uint32_t x) { return "0x" + hex64(x).substr(8); }
std::string hex32(float x) { return hex32(float_bits(x)); }

json config_of(const Architecture& a) {
  json types = json::array();
  for (LayerType t : a.layers) {
    types.push_back(t == LayerType::kSliding ? "sliding_attention" : "full_attention");
  }
  return {{"attention_bias", false},
          {"attention_k_eq_v", true},
          {"enable_moe_block", false},
          {"final_logit_softcapping", hex32(a.softcap)},
          {"global_head_dim", a.global.head_dim},
          {"head_dim", a.sliding.head_dim},
          {"hidden_activation", "gelu_pytorch_tanh"},
          {"hidden_size", a.hidden},
          {"hidden_size_per_layer_input", 0},
          {"intermediate_size", a.intermediate},
          {"layer_types", types},
          {"max_position_embeddings", a.max_position},
          {"num_attention_heads", a.num_heads},
          {"num_global_key_value_heads", a.global.num_kv_heads},
          {"num_hidden_layers", a.num_layers()},
          {"num_key_value_heads", a.sliding.num_kv_heads},
          {"num_kv_shared_layers", 0},
          {"rms_norm_eps", hex32(a.rms_eps)},
          {"segment", a.segment},
          {"sliding_window", a.window},
          {"tie_word_embeddings", true},
          {"use_bidirectional_attention", a.bidirectional_vision ? json("vision") : json()},
          {"use_double_wide_mlp", false},
          {"vocab_size", a.vocab}};
}

json rope_of(const Architecture& a, const RopeTable& table, LayerType t) {
  const AttentionSpec& s = a.attention(t);
  json freq = json::array();
  for (float f : table.inv_freq(t)) freq.push_back(hex32(f));
  json blocks = json::object();
  for (int64_t b : {0, 1, 255}) {
    if (b < table.num_blocks()) blocks[std::to_string(b)] = table.block(t, b).digest.hex();
  }
  return {{"rope_type", t == LayerType::kSliding ? "default" : "proportional"},
          {"rope_theta", "0x" + hex64(double_bits(s.rope_theta))},
          {"rotary_pairs", s.rotary_pairs},
          {"pairing", "(i, i + D/2)"},
          {"exponent_denominator", s.head_dim},
          {"factor", 1},
          {"angle", "fp32(inv_freq * p)"},
          {"table", "sin and cos of the fp32 angle, rounded once to fp32"},
          {"block_positions", kRopeBlock},
          {"inv_freq", freq},
          {"block_digests", blocks}};
}

json constants_of(const Architecture& a) {
  return {{"embedding_scale", hex32(a.embedding_scale())},
          {"embedding_scale_of_image_rows", "none"},
          {"norm_weight", "w"},
          {"norm_eps_place", "inside the root, after the mean"},
          {"norm_accumulate", "fp32"},
          {"qk_norm", "per head, weight [D], before rotary"},
          {"v_norm", "per head, no weight"},
          {"softmax_scale", hex32(1.0f)},
          {"attention_logit_softcap", "none"},
          {"attention_sinks", "none"},
          {"global_v_source", "k_proj output before k_norm and rotary"},
          {"layer_scalar", "[1] bf16 a layer, multiplies the residual after both adds"},
          {"gelu", "tanh form, rounded to bf16 before the product with up"},
          {"final_softcap_dtype", "fp32"},
          {"weight_dtype", "bf16"},
          {"vocab_pad", "none"}};
}

json mask_of(const Architecture& a) {
  return {
      {"semantics", "gemma4.mask.v1"},
      {"sliding", "i-W<j<=i"},
      {"sliding_visible_keys", a.window},
      {"global", "j<=i"},
      {"image", a.bidirectional_vision ? "bidirectional in sliding layers; not run yet" : "causal"},
      {"image_block_ids", "none"},
      {"positions", "0..n-1 in each sequence"}};
}

json tokens_of(const TokenSpec& t) {
  auto id = [](int64_t x) { return x < 0 ? json() : json(x); };
  return {{"pad_token_id", id(t.pad)},
          {"bos_token_id", id(t.bos)},
          {"eos_token_id", t.eos},
          {"eos_source", t.from_generation_config ? "generation_config.json" : "config.json"},
          {"suppress_tokens", t.suppress},
          {"image_token_id", id(t.image)},
          {"boi_token_id", id(t.begin_image)},
          {"eoi_token_id", id(t.end_image)},
          {"audio_token_id", id(t.audio)},
          {"video_token_id", id(t.video)}};
}

json vision_of(const Architecture& a) {
  json out = {
      {"soft_tokens_per_image", a.vision.soft_tokens > 0 ? json(a.vision.soft_tokens) : json()}};
  if (!a.has_vision) return out;
  const VisionSpec& v = a.vision;
  out.update({{"state", "recognised, not run yet"},
              {"head_dim", v.head_dim},
              {"hidden_size", v.hidden},
              {"intermediate_size", v.intermediate},
              {"num_attention_heads", v.heads},
              {"num_hidden_layers", v.layers},
              {"patch_size", v.patch},
              {"pooling_kernel_size", v.pooling},
              {"position_embedding_size", v.position_rows},
              {"rope_theta", "0x" + hex64(double_bits(v.rope_theta))},
              {"standardize", v.standardize},
              {"use_clipped_linears", false}});
  return out;
}

json fingerprint_of(const Architecture& a) {
  const RopeTable table(a);
  const int64_t text = a.text_parameters(), vision = a.vision_parameters();
  const auto text_count = text_tensors(a).size(), vision_count = vision_tensors(a).size();
  json unknown = json::object();
  for (const auto& [key, value] : a.unknown_keys) unknown[key] = value;
  return {{"samebits", "fingerprint/1"},
          {"model_type", "gemma4_text"},
          {"config", config_of(a)},
          {"rope",
           {{"sliding_attention", rope_of(a, table, LayerType::kSliding)},
            {"full_attention", rope_of(a, table, LayerType::kGlobal)}}},
          {"constants", constants_of(a)},
          {"mask", mask_of(a)},
          {"tokens", tokens_of(a.tokens)},
          {"vision", vision_of(a)},
          {"counts",
           {{"text_parameters", text},
            {"text_tensors", text_count},
            {"vision_parameters", vision},
            {"vision_tensors", vision_count},
            {"parameters", text + vision},
            {"tensors", text_count + vision_count}}},
          {"unknown_keys", unknown}};
}

void diff(const json& a, const json& b, const std::string& path, std::vector<std::string>& out) {
  if (a == b && a.type() == b.type()) return;
  if (a.is_object() && b.is_object()) {
    const std::string dot = path.empty() ? "" : path + ".";
    for (const auto& [key, value] : a.items()) {
      if (b.contains(key))
        diff(value, b[key], dot + key, out);
      else
        out.push_back(dot + key);
    }
    for (const auto& item : b.items()) {
      if (!a.contains(item.key())) out.push_back(dot + item.key());
    }
    return;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i)
      diff(a[i], b[i], path + "[" + std::to_string(i) + "]", out);
    return;
  }
  out.push_back(path);
}

}  // namespace

std::string fingerprint_json(const Architecture& arch) { return fingerprint_of(arch).dump(); }

std::string fingerprint_json(const Model& model) {
  json out = fingerprint_of(model.arch);
  out["weights"] = {{"digest", model.weights_digest},
                    {"epoch", "0x" + hex64(model.epoch)},
                    {"tensors", model.tensors.size()}};
  return out.dump();
}

std::string fingerprint_digest(const Architecture& arch) {
  return sha256_hex(fingerprint_json(arch));
}

Result<std::vector<std::string>> fingerprint_diff(const std::string& a, const std::string& b) {
  SB_TRY(ja, parse_json_strict(a, "the first fingerprint"));
  SB_TRY(jb, parse_json_strict(b, "the second fingerprint"));
  std::vector<std::string> out;
  diff(ja, jb, "", out);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace sb
