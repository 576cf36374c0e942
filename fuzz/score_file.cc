// Score files: what is accepted is written again, and comes back with the same bits.
#include "samebits/gate/score_file.h"

#include <cmath>
#include <set>

#include "fuzz/harness.h"
#include "samebits/base/bits.h"
#include "samebits/gate/numbers.h"

namespace sb::fuzz {
namespace {

void check_header(const RunHeader& a, const RunHeader& b) {
  FUZZ_CHECK(a.model == b.model && a.weights == b.weights && a.contracts == b.contracts &&
                 a.profile == b.profile && a.schedule == b.schedule && a.suppress == b.suppress &&
                 float_bits(a.temperature) == float_bits(b.temperature),
             "the header comes back");
}

void check_row(const ScoreRow& row) {
  FUZZ_CHECK(!row.id.empty() && is_utf8(row.id), "an id is text");
  FUZZ_CHECK(row.prompt_len >= 1 && !row.logprobs.empty(), "one token before, one scored");
  for (const float x : row.logprobs) FUZZ_CHECK(std::isfinite(x) && x <= 0, "finite, ≤ 0");
}

std::string written(const ScoreFile& file) {
  const std::string path = scratch("again.jsonl");
  auto writer = ScoreWriter::create(path, true, file.header);
  FUZZ_CHECK(writer, "the file can be made");
  for (const ScoreRow& row : file.rows)
    FUZZ_CHECK(writer->add(row), "a row that was read is sound");
  FUZZ_CHECK(writer->commit(), "commit");
  return read_text(path).value();
}

void run(std::string_view bytes) {
  const auto file = parse_score_file(bytes, "in.jsonl");
  if (!accepted(file, "in.jsonl")) return;
  FUZZ_CHECK(!file->rows.empty(), "no rows are no data");
  std::set<std::string> ids;
  for (const ScoreRow& row : file->rows) {
    check_row(row);
    FUZZ_CHECK(ids.insert(row.id).second, "ids are unique");
  }
  const std::string text = written(*file);
  const auto again = read_score_file(scratch("again.jsonl"));
  FUZZ_CHECK(again, "what was written is read: " + (again ? "" : again.error().text()));
  check_header(file->header, again->header);
  FUZZ_CHECK(again->rows.size() == file->rows.size(), "as many rows as were written");
  for (size_t r = 0; r < file->rows.size(); ++r) {
    const ScoreRow &a = file->rows[r], &b = again->rows[r];
    FUZZ_CHECK(a.id == b.id && a.tokens == b.tokens && a.prompt_len == b.prompt_len &&
                   a.logprobs.size() == b.logprobs.size(),
               "the row comes back");
    for (size_t i = 0; i < a.logprobs.size(); ++i) {
      FUZZ_CHECK(float_bits(a.logprobs[i]) == float_bits(b.logprobs[i]),
                 "log-probabilities come back to the bit");
    }
  }
  FUZZ_CHECK(written(*again) == text, "equal bits are equal bytes");
}

}  // namespace

void score_file(std::string_view bytes) {
  for (const std::string_view part : parts_of(bytes)) run(part);
}

}  // namespace sb::fuzz
