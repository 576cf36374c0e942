// Fingerprint: everything about a model that decides its arithmetic, as canonical JSON (sorted
// keys, no spaces), so that two runs can be told apart before any number is compared.
#pragma once

#include <string>
#include <vector>

#include "samebits/model/weights.h"

namespace sb {

// Without weights: config fields, layer schedule, rotary tables, constants, mask, token ids,
// counts.
std::string fingerprint_json(const Architecture& arch);
// The same with a "weights" object: digest, epoch, tensors.
std::string fingerprint_json(const Model& model);
// SHA-256 of fingerprint_json(arch), hex.
std::string fingerprint_digest(const Architecture& arch);

// Paths of the fields in which two fingerprints differ, such as "config.sliding_window", sorted.
// Fields that only one has count. Malformed JSON is kBrokenData.
Result<std::vector<std::string>> fingerprint_diff(const std::string& a, const std::string& b);

}  // namespace sb
