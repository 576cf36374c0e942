// Steps of load_model that others use by themselves.
#pragma once

#include "samebits/model/safetensors.h"
#include "samebits/model/tensor_names.h"
#include "samebits/model/tensor_scan.h"
#include "samebits/model/weights.h"

namespace sb {

// config.json and, where present, generation_config.json of a folder; opens no tensor.
Result<Architecture> load_architecture(const std::string& dir);

// SHA-256 over one line a tensor, "name [shape] digest", sorted by canonical name. Text tensors
// only: a checkpoint with and one without a vision tower run the same text model.
std::string weights_digest(const std::vector<TensorRecord>& sorted);

// Compares tokenizer.json, if the folder has one, with the vocabulary: an id beyond it is an error,
// rows without a token are a warning (they still count in every softmax).
Status check_tokenizer(const std::string& dir, const Architecture& arch,
                       std::vector<std::string>& warnings);

}  // namespace sb
