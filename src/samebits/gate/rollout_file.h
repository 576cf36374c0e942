// Prompts in, rollouts out: JSON lines of token rows behind a line that says what the run was. A
// rollout file is what `score` reads as tokens, `compare` as a log of the rollout engine and
// `audit` rescores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "samebits/base/result.h"
#include "samebits/chain/sequence.h"
#include "samebits/gate/run_header.h"

namespace sb {

// {"id", "tokens"} a line; a "prompt_len" cuts the tokens to the prompt, other keys are ignored.
// Refuses what token rows refuse: bad JSON, ids outside the vocabulary, empty or duplicate rows.
Result<std::vector<Sequence>> read_prompts(const std::string& path_or_dash, int64_t vocab,
                                           int64_t max_position);

// The first line and one row, each with its newline.
std::string rollout_header_line(const RunHeader& header);
std::string rollout_line(const Sequence& sequence, std::span<const float> logprobs,
                         float temperature, const std::vector<int32_t>& suppress);

}  // namespace sb
