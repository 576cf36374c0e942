// Score files, version score/1: JSON lines; the first says what the run was (RunHeader), each later
// one holds the selected log-probabilities of a token row. Two runs with equal bits write equal
// bytes, so host, time and backend have no place here. The reader refuses anything it did not write
// the like of. A file cut at the end of a line is a shorter valid file: comparing it gives
// kNotComparable by its missing rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/file.h"
#include "samebits/base/result.h"
#include "samebits/gate/run_header.h"
#include "samebits/gate/token_rows.h"

namespace sb {

struct ScoreRow {
  std::string id;
  std::string tokens;  // token_digest of the whole row
  int prompt_len = 0;
  std::vector<float> logprobs;  // logprobs[i] belongs to tokens[prompt_len + i]
};

struct ScoreFile {
  RunHeader header;
  std::vector<ScoreRow> rows;
};

// hex64 of the row digest over token ids.
std::string token_digest(std::span<const int32_t> tokens);

// One line with its newline.
std::string score_header_line(const RunHeader& header);
std::string score_row_line(const ScoreRow& row);

// Writes row by row; nothing appears at the path before commit().
class ScoreWriter {
 public:
  static Result<ScoreWriter> create(const std::string& path, bool force, const RunHeader& header);
  // Refuses (kBrokenData) non-finite or positive log-probabilities: they are no score.
  Status add(const ScoreRow& row);
  Status add(const TokenRow& row, std::span<const float> logprobs);
  Status commit();  // refuses a file without rows

 private:
  explicit ScoreWriter(OutputFile out) : out_(std::move(out)) {}
  OutputFile out_;
  int64_t rows_ = 0;
};

Result<ScoreFile> read_score_file(const std::string& path_or_dash);
Result<ScoreFile> parse_score_file(std::string_view text, const std::string& where);

}  // namespace sb
