// Token rows, as `score` reads them, as rollout logs of another engine, and as prompts.
#include "samebits/gate/token_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fuzz/harness.h"
#include "samebits/base/bits.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/rollout_file.h"
#include "samebits/gate/score_file.h"

namespace sb::fuzz {
namespace {

constexpr int64_t kVocab = 2500, kPositions = 64;

void check_row(const TokenRow& row, int64_t vocab, int64_t max_position) {
  const auto tokens = static_cast<int64_t>(row.tokens.size());
  FUZZ_CHECK(!row.id.empty() && is_utf8(row.id), "an id is text");
  FUZZ_CHECK(tokens >= 2 && tokens <= max_position, "a row has 2 tokens to the limit");
  FUZZ_CHECK(row.prompt_len >= 1 && row.prompt_len < tokens, "one token before, one scored");
  for (const int32_t t : row.tokens) FUZZ_CHECK(t >= 0 && t < vocab, "tokens are in range");
  const auto scored = static_cast<size_t>(row.num_scored());
  if (row.logprobs) {
    FUZZ_CHECK(row.logprobs->size() == scored, "one log-probability a scored token");
    for (const float x : *row.logprobs) FUZZ_CHECK(std::isfinite(x) && x <= 0, "finite, ≤ 0");
  }
  if (row.mask) {
    FUZZ_CHECK(row.mask->size() == scored, "one mask value a scored token");
    for (const uint8_t m : *row.mask) FUZZ_CHECK(m <= 1, "a mask is 0 or 1");
  }
  if (row.temperature) {
    FUZZ_CHECK(*row.temperature > 0 && std::isfinite(*row.temperature), "temperature > 0");
  }
  if (row.suppress) {
    const auto& s = *row.suppress;
    FUZZ_CHECK(std::adjacent_find(s.begin(), s.end(), std::greater_equal<>()) == s.end(),
               "suppressed ids ascend");
    for (const int32_t t : s) FUZZ_CHECK(t >= 0 && t < vocab, "suppressed ids are in range");
  }
}

std::vector<float> logprobs_of(const TokenRow& row) {
  return row.logprobs.value_or(std::vector<float>(static_cast<size_t>(row.num_scored()), -0.0f));
}

// A row as `rollout` would write it comes back equal.
void check_rewrite(const TokenRow& row, int64_t vocab, int64_t max_position) {
  const std::vector<float> logprobs = logprobs_of(row);
  const float temperature = row.temperature.value_or(1.0f);
  const std::vector<int32_t> suppress = row.suppress.value_or(std::vector<int32_t>());
  const std::string line =
      rollout_line({row.id, row.tokens, row.prompt_len}, logprobs, temperature, suppress);
  const auto again = parse_token_rows(line, "again", vocab, max_position, {.need_logprobs = true});
  FUZZ_CHECK(again, "what was written is read: " + (again ? "" : again.error().text()));
  FUZZ_CHECK(again->size() == 1, "one row was written");
  const TokenRow& b = (*again)[0];
  FUZZ_CHECK(b.id == row.id && b.tokens == row.tokens && b.prompt_len == row.prompt_len &&
                 *b.suppress == suppress && b.extra.empty(),
             "the row comes back");
  FUZZ_CHECK(float_bits(*b.temperature) == float_bits(temperature), "the temperature comes back");
  for (size_t i = 0; i < logprobs.size(); ++i) {
    FUZZ_CHECK(float_bits((*b.logprobs)[i]) == float_bits(logprobs[i]),
               "log-probabilities come back to the bit");
  }
}

// As `score` would write them, they are read as a score file.
void check_scores(const std::vector<TokenRow>& rows) {
  const RunHeader header{"m", "w", "c", "sm90", 1.0f, {}, "train"};
  const std::string path = scratch("scores.jsonl");
  {
    auto writer = ScoreWriter::create(path, true, header);
    FUZZ_CHECK(writer, "the file can be made");
    for (const TokenRow& row : rows) FUZZ_CHECK(writer->add(row, logprobs_of(row)), "add");
    FUZZ_CHECK(writer->commit(), "commit");
  }
  const auto scores = read_score_file(path);
  FUZZ_CHECK(scores && scores->rows.size() == rows.size(), "what was written is read");
  for (size_t r = 0; r < rows.size(); ++r) {
    const ScoreRow& b = scores->rows[r];
    FUZZ_CHECK(b.id == rows[r].id && b.tokens == token_digest(rows[r].tokens) &&
                   b.prompt_len == rows[r].prompt_len && b.logprobs == logprobs_of(rows[r]),
               "scores come back");
  }
}

void check_rows(const std::vector<TokenRow>& rows, int64_t vocab, int64_t max_position) {
  std::set<std::string> ids;
  for (const TokenRow& row : rows) {
    FUZZ_CHECK(ids.insert(row.id).second, "ids are unique");
    check_row(row, vocab, max_position);
    check_rewrite(row, vocab, max_position);
  }
  FUZZ_CHECK(!rows.empty(), "no rows are no data");
  check_scores(rows);
}

void run(std::string_view bytes) {
  const auto rows = parse_token_rows(bytes, "in.jsonl", kVocab, kPositions);
  if (accepted(rows, "in.jsonl")) check_rows(*rows, kVocab, kPositions);

  TokenRowOptions log{.keys = {}, .need_logprobs = true};
  for (const char* rename : {"logprobs=rollout_log_probs", "mask=loss_mask"}) {
    FUZZ_CHECK(add_key_rename(rename, log), "a known key can be renamed");
  }
  const auto logged = parse_token_rows(bytes, "log.jsonl", kAnyVocab, kAnyPosition, log);
  if (accepted(logged, "log.jsonl")) {
    check_rows(*logged, kAnyVocab, kAnyPosition);
    for (const TokenRow& row : *logged) FUZZ_CHECK(row.logprobs, "log-probabilities are there");
  }

  const std::string path = scratch("prompts.jsonl");
  write_scratch("prompts.jsonl", bytes);
  const auto prompts = read_prompts(path, kVocab, kPositions);
  if (!accepted(prompts, path)) return;
  for (const Sequence& p : *prompts) {
    FUZZ_CHECK(p.size() >= 1 && p.size() <= kPositions && p.prompt_len == p.size(),
               "a prompt is all of its tokens");
    for (const int32_t t : p.tokens) FUZZ_CHECK(t >= 0 && t < kVocab, "tokens are in range");
  }
}

}  // namespace

void token_rows(std::string_view bytes) {
  for (const std::string_view part : parts_of(bytes)) run(part);
}

}  // namespace sb::fuzz
