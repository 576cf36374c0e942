// The tensors a checkpoint of an Architecture must hold: names, shapes, and what may be beside
// them. Canonical names start with model.language_model.; a text-only checkpoint says model.
// instead. Anything missing, unknown or misshapen is an error: a default would be a different
// model.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/model/architecture.h"

namespace sb {

enum class TensorKind : uint8_t { kMatrix, kEmbedding, kQkNorm, kNorm, kLayerScalar, kVision };

struct ExpectedTensor {
  std::string name;  // canonical
  std::vector<int64_t> shape;
  TensorKind kind = TensorKind::kMatrix;
  int64_t numel() const;
};

// Text tensors in the order embedding, layers, final norm.
std::vector<ExpectedTensor> text_tensors(const Architecture& arch);
// Vision tower and projection; empty without a vision tower.
std::vector<ExpectedTensor> vision_tensors(const Architecture& arch);

inline constexpr std::string_view kFullPrefix = "model.language_model.";
inline constexpr std::string_view kTextPrefix = "model.";
// A canonical text name as a text-only checkpoint spells it.
std::string text_only_name(std::string_view canonical);

// What a checkpoint has and how it maps onto the expectation.
struct NameMap {
  std::map<std::string, std::string> stored;  // canonical name → name in the files
  std::string head;  // stored name of lm_head.weight; must equal the embedding
  std::vector<std::pair<std::string, std::string>>
      shared_v;        // (v_proj, k_proj), stored names; must be equal
  int64_t vision = 0;  // recognised vision tensors
};

// A tensor of the files: name and shape.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// Matches stored tensors against the architecture. `where` names the checkpoint.
Result<NameMap> match_tensors(const Architecture& arch, const std::vector<StoredTensor>& stored,
                              const std::string& where);

std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace sb
