// Switches of the format: features that other members of the family have and no contract covers.
#include <nlohmann/json.hpp>

#include "samebits/model/config_reader.h"

namespace sb {

using nlohmann::json;

// Features other members of the family have. Each has a reason a reader can act on.
void refuse_features(ConfigReader& text) {
  text.flag("attention_bias", false, false, "projections with a bias have no contract");
  text.flag("attention_k_eq_v", true, std::nullopt,
            "global layers with a v_proj of their own have no contract");
  text.flag("enable_moe_block", false, false, "mixture-of-experts layers have no contract");
  text.flag("use_double_wide_mlp", false, false, "the double-wide MLP has no contract");
  text.zero("hidden_size_per_layer_input", true, "per-layer input embeddings have no contract");
  text.zero("num_kv_shared_layers", false, "layers that share another layer's KV have no contract");
  text.zero("attention_dropout", false, "dropout makes runs differ by design");
  for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) {
    text.forbid(key, "mixture-of-experts layers have no contract");
  }
  for (const char* key : {"attn_logit_softcapping", "attention_logit_softcapping",
                          "attn_logit_softcap", "attention_logit_cap"}) {
    text.forbid(key, "attention scores are not capped in Gemma 4");
  }
  text.forbid("query_pre_attn_scalar", "the attention scale of Gemma 4 is 1.0");
  text.forbid("attention_chunk_size", "chunked attention has no contract");
  text.forbid("rope_scaling", "scaled rotary embeddings have no contract");
  text.forbid("quantization_config", "weights must be plain bf16");
  const json* act = text.find("hidden_activation");
  if (!act) {
    text.broken("hidden_activation", "is missing");
  } else if (*act != "gelu_pytorch_tanh") {
    text.refused("hidden_activation", "is " + shown(*act) + "; the contract is gelu_pytorch_tanh");
  }
  if (const json* also = text.find("hidden_act"); also && *also != "gelu_pytorch_tanh") {
    text.refused("hidden_act", "is " + shown(*also) + "; the contract is gelu_pytorch_tanh");
  }
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (const json* v = text.find(key); v && *v != "bfloat16") {
      text.refused(key,
                   "is " + shown(*v) + "; weights and embedding scale are defined for bfloat16");
    }
  }
}

void read_bidirectional(ConfigReader& text, Architecture& arch) {
  const json* v = text.find("use_bidirectional_attention");
  if (!v) return;
  arch.bidirectional_vision = *v == "vision";
  if (!arch.bidirectional_vision) {
    text.refused("use_bidirectional_attention",
                 "is " + shown(*v) + "; text is causal, so null or \"vision\" can run");
  }
}

void read_tied(ConfigReader& text, ConfigReader* outer) {
  const std::string why = "the head and the embedding are one tensor in the contract";
  // Both levels may carry the flag; one of them must, and each that does must say true.
  if (outer && outer->has("tie_word_embeddings")) {
    outer->flag("tie_word_embeddings", true, true, why);
    text.flag("tie_word_embeddings", true, true, why);
  } else {
    text.flag("tie_word_embeddings", true, std::nullopt, why);
  }
}

}  // namespace sb
