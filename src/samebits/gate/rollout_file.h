// Prompts in, rollouts out: JSON lines of token rows. A rollout file is what `score` reads as
// tokens and `compare` as a log of the rollout engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "samebits/base/result.h"
#include "samebits/chain/sequence.h"

namespace sb {

// {"id", "tokens"} a line; a "prompt_len" cuts the tokens to the prompt, other keys are ignored.
// Refuses what token rows refuse: bad JSON, ids outside the vocabulary, empty or duplicate rows.
Result<std::vector<Sequence>> read_prompts(const std::string& path_or_dash, int64_t vocab,
                                           int64_t max_position);

// One line with its newline.
std::string rollout_line(const Sequence& sequence, std::span<const float> logprobs,
                         float temperature, const std::vector<int32_t>& suppress);

}  // namespace sb
