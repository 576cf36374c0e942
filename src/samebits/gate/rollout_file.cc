#include "samebits/gate/rollout_file.h"

#include "samebits/gate/header_json.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/token_rows.h"

namespace sb {
namespace {

template <class T, class F>
std::string json_list(const T& values, F text) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + text(values[i]);
  return out + "]";
}

}  // namespace

Result<std::vector<Sequence>> read_prompts(const std::string& path_or_dash, int64_t vocab,
                                           int64_t max_position) {
  TokenRowOptions options;
  options.prompts = true;
  SB_TRY(rows, read_token_rows(path_or_dash, vocab, max_position, options));
  std::vector<Sequence> prompts;
  for (auto& r : rows) prompts.push_back({r.id, std::move(r.tokens), r.prompt_len});
  return prompts;
}

std::string rollout_header_line(const RunHeader& header) {
  return "{\"samebits\":" + json_string(kRolloutVersion) + "," + header_members(header) + "}\n";
}

std::string rollout_line(const Sequence& sequence, std::span<const float> logprobs,
                         float temperature, const std::vector<int32_t>& suppress) {
  const auto integer = [](int32_t v) { return std::to_string(v); };
  return "{\"id\":" + json_string(sequence.id) +
         ",\"tokens\":" + json_list(sequence.tokens, integer) +
         ",\"prompt_len\":" + std::to_string(sequence.prompt_len) +
         ",\"logprobs\":" + json_list(logprobs, [](float v) { return shortest(v); }) +
         ",\"temperature\":" + shortest(temperature) +
         ",\"suppress\":" + json_list(suppress, integer) + "}\n";
}

}  // namespace sb
