// What `score` and `rollout` share: token rows as sequences, one temperature and one list of
// suppressed ids for a run, and the run.json beside an output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samebits/gate/engine.h"
#include "samebits/gate/token_rows.h"

namespace sb {

std::vector<Sequence> as_sequences(const std::vector<TokenRow>& rows);
std::vector<std::string> token_digests(const std::vector<Sequence>& sequences);

struct Semantics {
  float temperature = 1.0f;
  std::vector<int32_t> suppress;  // ascending
};

// From the command line if given, else from the rows, else temperature 1 and the checkpoint's
// suppressed ids. Rows that disagree with each other or with the command line are refused
// (kSemanticsDiffer) by name, and so is a mixture of rows that say and rows that do not, unless the
// command line says it for all: a silent choice here is the commonest cause of a mismatch.
Result<Semantics> agree_on_semantics(const std::vector<TokenRow>& rows, const Architecture& arch,
                                     std::optional<float> temperature,
                                     std::optional<std::vector<int32_t>> suppress);

// kUsage for an id of the command line outside 0 … vocab−1.
Status check_vocabulary(const char* flag, const std::vector<int32_t>& ids, int64_t vocab);

struct RunInfo {
  std::string command;
  RunHeader header;
  std::string backend = "cpu", isa;
  int threads = 1, tp = 1;
  int64_t steps = 0, tokens = 0;
  double seconds = 0;
  size_t arena_bytes = 0;
};

// OUT.run.json: host, time, backend, command, and the hash-chained records.
Status write_run_json(const std::string& path, bool force, const RunInfo& info,
                      const std::vector<Record>& records);

}  // namespace sb
