#include "samebits/model/tensor_names.h"

#include <algorithm>
#include <set>

#include "samebits/base/utf8.h"

namespace sb {
namespace {

constexpr size_t kListed = 8;  // names shown of a long list

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < kListed; ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > kListed) out += ", … (" + std::to_string(names.size()) + " in all)";
  return out;
}

bool is_vision_name(std::string_view n) {
  return n.starts_with("model.vision_tower.") || n.starts_with("model.embed_vision.");
}

}  // namespace

int64_t ExpectedTensor::numel() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string text_only_name(std::string_view canonical) {
  SB_ASSERT(canonical.starts_with(kFullPrefix), "not a canonical text name");
  return std::string(kTextPrefix) + std::string(canonical.substr(kFullPrefix.size()));
}

std::vector<ExpectedTensor> text_tensors(const Architecture& arch) {
  std::vector<ExpectedTensor> out;
  const int64_t h = arch.hidden, m = arch.intermediate;
  const std::string p(kFullPrefix);
  out.push_back({p + "embed_tokens.weight", {arch.vocab, h}, TensorKind::kEmbedding});
  for (int i = 0; i < arch.num_layers(); ++i) {
    const AttentionSpec& a = arch.attention(i);
    const int64_t d = a.head_dim, q = arch.num_heads * d, kv = a.num_kv_heads * d;
    const std::string l = p + "layers." + std::to_string(i) + ".", at = l + "self_attn.";
    out.push_back({l + "input_layernorm.weight", {h}, TensorKind::kNorm});
    out.push_back({at + "q_proj.weight", {q, h}});
    out.push_back({at + "k_proj.weight", {kv, h}});
    if (arch.layers[i] == LayerType::kSliding) out.push_back({at + "v_proj.weight", {kv, h}});
    out.push_back({at + "o_proj.weight", {h, q}});
    out.push_back({at + "q_norm.weight", {d}, TensorKind::kQkNorm});
    out.push_back({at + "k_norm.weight", {d}, TensorKind::kQkNorm});
    out.push_back({l + "post_attention_layernorm.weight", {h}, TensorKind::kNorm});
    out.push_back({l + "pre_feedforward_layernorm.weight", {h}, TensorKind::kNorm});
    out.push_back({l + "mlp.gate_proj.weight", {m, h}});
    out.push_back({l + "mlp.up_proj.weight", {m, h}});
    out.push_back({l + "mlp.down_proj.weight", {h, m}});
    out.push_back({l + "post_feedforward_layernorm.weight", {h}, TensorKind::kNorm});
    out.push_back({l + "layer_scalar", {1}, TensorKind::kLayerScalar});
  }
  out.push_back({p + "norm.weight", {h}, TensorKind::kNorm});
  return out;
}

std::vector<ExpectedTensor> vision_tensors(const Architecture& arch) {
  std::vector<ExpectedTensor> out;
  if (!arch.has_vision) return out;
  const VisionSpec& v = arch.vision;
  const int64_t h = v.hidden, m = v.intermediate, q = int64_t{v.heads} * v.head_dim;
  auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    out.push_back({name, std::move(shape), TensorKind::kVision});
  };
  const std::string p = "model.vision_tower.";
  add(p + "patch_embedder.input_proj.weight", {h, int64_t{3} * v.patch * v.patch});
  add(p + "patch_embedder.position_embedding_table", {2, v.position_rows, h});
  for (int i = 0; i < v.layers; ++i) {
    const std::string l = p + "encoder.layers." + std::to_string(i) + ".", at = l + "self_attn.";
    for (const char* n : {"q_proj", "k_proj", "v_proj"}) add(at + n + ".linear.weight", {q, h});
    add(at + "o_proj.linear.weight", {h, q});
    for (const char* n : {"q_norm", "k_norm"}) add(at + n + ".weight", {v.head_dim});
    for (const char* n : {"gate_proj", "up_proj"}) add(l + "mlp." + n + ".linear.weight", {m, h});
    add(l + "mlp.down_proj.linear.weight", {h, m});
    for (const char* n : {"input_layernorm", "post_attention_layernorm",
                          "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      add(l + n + ".weight", {h});
    }
  }
  if (v.standardize) {
    add(p + "std_bias", {h});
    add(p + "std_scale", {h});
  }
  add("model.embed_vision.embedding_projection.weight", {arch.hidden, h});
  return out;
}

int64_t Architecture::vision_parameters() const {
  int64_t n = 0;
  for (const auto& t : vision_tensors(*this)) n += t.numel();
  return n;
}

Result<NameMap> match_tensors(const Architecture& arch, const std::vector<StoredTensor>& stored,
                              const std::string& where) {
  Refusal fault{Code::kBrokenData, "match the tensors of " + where + " to its config", {}, {}};
  bool full = false, text_only = false;
  for (const auto& s : stored) {
    if (s.name.starts_with(kFullPrefix))
      full = true;
    else if (s.name.starts_with(kTextPrefix) && !is_vision_name(s.name))
      text_only = true;
  }
  if (full && text_only) {
    fault.reasons.push_back(
        "some names start with model.language_model., others with model. alone; "
        "a checkpoint has one scheme");
    fault.remedy = "convert it again with one tool";
    return tl::unexpected(fault);
  }

  std::map<std::string, const ExpectedTensor*> expected;  // by stored spelling
  const auto text = text_tensors(arch);
  const auto vision = vision_tensors(arch);
  for (const auto& t : text) expected[text_only ? text_only_name(t.name) : t.name] = &t;
  for (const auto& t : vision) expected[t.name] = &t;

  NameMap map;
  std::vector<std::string> unknown, misshapen;
  std::set<std::string> seen;
  for (const auto& s : stored) {
    seen.insert(s.name);
    if (const auto it = expected.find(s.name); it != expected.end()) {
      const ExpectedTensor& e = *it->second;
      if (s.shape != e.shape) {
        misshapen.push_back(s.name + " is " + shape_text(s.shape) + ", the config asks for " +
                            shape_text(e.shape));
      }
      if (e.kind == TensorKind::kVision)
        ++map.vision;
      else
        map.stored[e.name] = s.name;
    } else if (s.name == "lm_head.weight") {
      map.head = s.name;
      if (s.shape != text[0].shape) {
        misshapen.push_back(s.name + " is " + shape_text(s.shape) + ", the embedding " +
                            shape_text(text[0].shape));
      }
    } else {
      unknown.push_back(printable(s.name));
    }
  }
  // A v_proj on a K=V layer is superfluous, and harmless only as a copy of k_proj.
  std::erase_if(unknown, [&](const std::string& name) {
    const std::string tail = ".self_attn.v_proj.weight";
    if (!name.ends_with(tail)) return false;
    const std::string k = name.substr(0, name.size() - tail.size()) + ".self_attn.k_proj.weight";
    if (!expected.contains(k) || !seen.contains(k)) return false;
    map.shared_v.emplace_back(name, k);
    return true;
  });

  std::vector<std::string> missing;
  for (const auto& [name, e] : expected) {
    if (seen.contains(name)) continue;
    // A checkpoint without any vision tensor is a text model; part of a tower is a broken one.
    if (e->kind == TensorKind::kVision && map.vision == 0) continue;
    missing.push_back(name);
  }
  if (!missing.empty()) {
    fault.reasons.push_back(std::to_string(missing.size()) + " of " +
                            std::to_string(expected.size()) +
                            " tensors are missing: " + listed(missing));
  }
  if (!unknown.empty()) {
    std::string kind;
    if (std::any_of(unknown.begin(), unknown.end(), is_vision_name) && !arch.has_vision) {
      kind = " (the config describes no vision tower)";
    }
    fault.reasons.push_back(std::to_string(unknown.size()) + " tensors are not known" + kind +
                            ": " + listed(unknown));
  }
  for (size_t i = 0; i < misshapen.size() && i < kListed; ++i) {
    fault.reasons.push_back("tensor " + misshapen[i]);
  }
  if (misshapen.size() > kListed) {
    fault.reasons.push_back(std::to_string(misshapen.size()) + " tensors have wrong shapes in all");
  }
  if (!fault.reasons.empty()) {
    fault.remedy =
        "the config.json of this very checkpoint; names are model.language_model.… or, "
        "text only, model.…";
    return tl::unexpected(fault);
  }
  return map;
}

}  // namespace sb
