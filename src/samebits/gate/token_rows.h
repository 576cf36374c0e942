// Token rows: JSON lines {"id", "tokens":[…], "prompt_len":n} with optional logprobs, mask,
// temperature and suppress: what is scored, and what rollout logs are compared as. A first line
// {"samebits":"rollout/1", …} says what the run was; logs of other engines have none. Read line by
// line; every refusal names file, line, row, key, value and limit, before any kernel runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/result.h"
#include "samebits/gate/run_header.h"

namespace sb {

struct TokenRow {
  std::string id;
  std::vector<int32_t> tokens;
  int prompt_len = 0;  // 1 … tokens.size() − 1; tokens[prompt_len …] are scored
  std::optional<std::vector<float>> logprobs;  // one per scored token
  std::optional<std::vector<uint8_t>> mask;    // one per scored token; 0 = leave out of comparisons
  std::optional<float> temperature;
  std::optional<std::vector<int32_t>> suppress;  // ascending ids
  std::string extra;  // unknown keys as one JSON object, "" if none; kept, never interpreted

  int num_scored() const { return static_cast<int>(tokens.size()) - prompt_len; }
};

struct TokenRowOptions {
  // Our key → the key to read instead, e.g. {"logprobs", "rollout_log_probs"}.
  std::map<std::string, std::string> keys;
  bool need_logprobs = false;
  // For compare and audit, which count them: values that are null, not finite or positive do not
  // end the reading. null reads as NaN, and so do Python's bare words.
  bool keep_bad_logprobs = false;
  // Rows are prompts: one token is enough, prompt_len is optional and cuts the tokens, and results
  // of an earlier run (logprobs, mask) are ignored. prompt_len becomes the number of tokens.
  bool prompts = false;
};

// Parses "logprobs=rollout_log_probs" into the map; refuses keys that do not exist.
Status add_key_rename(const std::string& text, TokenRowOptions& options);

// Ids must lie in 0 … vocab−1 and rows hold at most max_position tokens (kRefused beyond it).
// "-" is standard input. No rows at all is kBrokenData.
Result<std::vector<TokenRow>> read_token_rows(const std::string& path_or_dash, int64_t vocab,
                                              int64_t max_position,
                                              const TokenRowOptions& options = {});
// The same on text in memory; `where` names it in messages.
Result<std::vector<TokenRow>> parse_token_rows(std::string_view text, const std::string& where,
                                               int64_t vocab, int64_t max_position,
                                               const TokenRowOptions& options = {});

inline constexpr const char* kRolloutVersion = "rollout/1";

struct TokenLog {
  std::optional<RunHeader> header;  // of the line {"samebits":"rollout/1", …}
  std::vector<TokenRow> rows;
};
// The rows with their header; the functions above check the header and drop it. A row whose
// temperature or suppressed ids contradict the header is refused.
Result<TokenLog> parse_token_log(std::string_view text, const std::string& where, int64_t vocab,
                                 int64_t max_position, const TokenRowOptions& options = {});
Result<TokenLog> read_token_log(const std::string& path_or_dash, int64_t vocab,
                                int64_t max_position, const TokenRowOptions& options = {});

// Limits for readers that know no model: ids are int32.
inline constexpr int64_t kAnyVocab = int64_t{1} << 31;
inline constexpr int64_t kAnyPosition = int64_t{1} << 31;

}  // namespace sb
