// verify: the scenario matrix. Every scenario runs the same token rows another way; the reference
// is each row alone through the training schedule, without faults. All log-probabilities must be
// the same bits; some scenarios are also traced, and every boundary of every row must agree. A red
// scenario is named by its first differing boundary.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samebits/gate/engine.h"
#include "samebits/gate/scenarios.h"
#include "samebits/gate/spread.h"

namespace sb {

struct VerifyOptions {
  std::vector<Sequence> rows;  // empty: made from the vocabulary, 5 to 200 tokens and a long one
  Meaning meaning;  // of the rows; for every scenario that has no other temperature or list
  std::string suite = "all";  // or "hybrid-attention"
  std::function<void(const std::string& scenario, int64_t done, int64_t total)> progress;
  std::function<bool()> interrupted;
};

struct ScenarioResult {
  std::string group, name;
  Code code = Code::kEqual;
  int64_t compared = 0, differing = 0;  // log-probabilities
  int64_t digests = 0;                  // row digests compared, where the scenario is traced
  std::string finding;                  // "layers.0.attn.ctx, row r200, position 23"; "" when equal
  std::string boundary, row;            // parts of the finding
  int64_t position = -1;
  double seconds = 0;
};

struct VerifyReport {
  RunHeader header;
  std::vector<ScenarioResult> scenarios;
  Spread spread;
  int64_t compared = 0, differing = 0, digests = 0;
  Code code = Code::kEqual;
  double seconds = 0;
  std::vector<std::string> planted;  // faults, for the report's own operator only
};

// Refused: rows that cannot run, an unknown suite. A differing scenario is no refusal.
Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options);

// The rows of verify when none are given: 5, 33, 64, 65 and 200 tokens and one of `long_row` tokens
// (0: none), ids from the counter RNG.
std::vector<Sequence> verify_rows(const Architecture& arch, int64_t long_row);

std::string verify_text(const VerifyReport& report);
std::string verify_json(const VerifyReport& report);
std::string verify_html(const VerifyReport& report);

}  // namespace sb
