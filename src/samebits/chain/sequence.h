// A token row as the chain sees it, and the rows of one step in terms of sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sb {

struct Sequence {
  std::string id;
  std::vector<int32_t> tokens;
  int prompt_len = 1;  // tokens[prompt_len …] are scored
  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_scored() const { return size() - prompt_len; }
};

// logprobs[s][i] belongs to tokens[prompt_len + i] of sequence s.
using Logprobs = std::vector<std::vector<float>>;

}  // namespace sb
