// What a run was: the part of score and trace files that must agree before numbers are compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sb {

struct RunHeader {
  std::string model;      // architecture digest
  std::string weights;    // weights digest
  std::string contracts;  // "gemma4.strict.v1:DIGEST"
  std::string profile;    // "sm90", "gfx942", "ieee"
  float temperature = 1.0f;
  std::vector<int32_t> suppress;  // ascending ids
  std::string schedule;           // "train", "prefill", "chunked:N", "decode"; may differ
};

}  // namespace sb
