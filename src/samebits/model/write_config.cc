// write_config: config.json in the nested form of the published checkpoint.
#include <charconv>
#include <nlohmann/json.hpp>

#include "samebits/model/architecture.h"

namespace sb {
namespace {

using nlohmann::ordered_json;

// The shortest decimal that reads back to the same fp32: 1e-06 rather than 9.99999997e-07.
double shortest(float x) {
  char buf[32];
  const auto end = std::to_chars(buf, buf + sizeof buf, x).ptr;
  double out = 0;
  std::from_chars(buf, end, out);
  return out;
}

void put_id(ordered_json& to, const char* key, int64_t id) {
  if (id >= 0) to[key] = id;
}

ordered_json text_of(const Architecture& a) {
  ordered_json types = ordered_json::array();
  for (LayerType t : a.layers) {
    types.push_back(t == LayerType::kSliding ? "sliding_attention" : "full_attention");
  }
  ordered_json t;
  t["model_type"] = "gemma4_text";
  t["attention_bias"] = false;
  t["attention_dropout"] = 0.0;
  t["attention_k_eq_v"] = true;
  t["dtype"] = "bfloat16";
  t["enable_moe_block"] = false;
  t["final_logit_softcapping"] = shortest(a.softcap);
  t["global_head_dim"] = a.global.head_dim;
  t["head_dim"] = a.sliding.head_dim;
  t["hidden_activation"] = "gelu_pytorch_tanh";
  t["hidden_size"] = a.hidden;
  t["hidden_size_per_layer_input"] = 0;
  t["intermediate_size"] = a.intermediate;
  t["layer_types"] = types;
  t["max_position_embeddings"] = a.max_position;
  t["num_attention_heads"] = a.num_heads;
  t["num_global_key_value_heads"] = a.global.num_kv_heads;
  t["num_hidden_layers"] = a.num_layers();
  t["num_key_value_heads"] = a.sliding.num_kv_heads;
  t["num_kv_shared_layers"] = 0;
  t["rms_norm_eps"] = shortest(a.rms_eps);
  t["rope_parameters"]["full_attention"] = {
      {"partial_rotary_factor", 2.0 * a.global.rotary_pairs / a.global.head_dim},
      {"rope_theta", a.global.rope_theta},
      {"rope_type", "proportional"}};
  t["rope_parameters"]["sliding_attention"] = {{"rope_theta", a.sliding.rope_theta},
                                               {"rope_type", "default"}};
  t["sliding_window"] = a.window;
  t["tie_word_embeddings"] = true;
  t["use_bidirectional_attention"] =
      a.bidirectional_vision ? ordered_json("vision") : ordered_json(nullptr);
  t["use_double_wide_mlp"] = false;
  t["vocab_size"] = a.vocab;
  put_id(t, "pad_token_id", a.tokens.pad);
  put_id(t, "bos_token_id", a.tokens.bos);
  return t;
}

ordered_json vision_of(const VisionSpec& v) {
  ordered_json o;
  o["model_type"] = "gemma4_vision";
  o["head_dim"] = v.head_dim;
  o["hidden_activation"] = "gelu_pytorch_tanh";
  o["hidden_size"] = v.hidden;
  o["intermediate_size"] = v.intermediate;
  o["num_attention_heads"] = v.heads;
  o["num_hidden_layers"] = v.layers;
  o["num_key_value_heads"] = v.heads;
  o["patch_size"] = v.patch;
  o["pooling_kernel_size"] = v.pooling;
  o["position_embedding_size"] = v.position_rows;
  o["rms_norm_eps"] = 1e-6;
  o["rope_parameters"] = {{"rope_theta", v.rope_theta}, {"rope_type", "default"}};
  o["standardize"] = v.standardize;
  o["use_clipped_linears"] = false;
  return o;
}

}  // namespace

std::string write_config(const Architecture& a) {
  ordered_json c;
  c["architectures"] = {"Gemma4ForConditionalGeneration"};
  c["model_type"] = "gemma4";
  c["dtype"] = "bfloat16";
  c["audio_config"] = nullptr;
  if (!a.tokens.eos.empty()) c["eos_token_id"] = a.tokens.eos;
  put_id(c, "image_token_id", a.tokens.image);
  put_id(c, "boi_token_id", a.tokens.begin_image);
  put_id(c, "eoi_token_id", a.tokens.end_image);
  put_id(c, "audio_token_id", a.tokens.audio);
  put_id(c, "video_token_id", a.tokens.video);
  c["text_config"] = text_of(a);
  c["tie_word_embeddings"] = true;
  c["vision_config"] = a.has_vision ? vision_of(a.vision) : ordered_json(nullptr);
  if (a.vision.soft_tokens > 0) c["vision_soft_tokens_per_image"] = a.vision.soft_tokens;
  if (a.segment != Architecture{}.segment) c["samebits"] = {{"segment", a.segment}};
  return c.dump(2) + "\n";
}

}  // namespace sb
