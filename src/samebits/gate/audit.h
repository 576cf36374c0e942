// audit: some rows of a rollout log, rescored on this machine and compared with what the log says,
// bit by bit. Which rows is decided by a seed alone, so two auditors draw the same ones. Each row
// is scored alone, with the log's own profile, temperature and suppressed ids.
//
// A log whose header names other contracts (2), weights (3) or another model (4) is refused before
// anything runs. A row of which most tokens differ is rescored once more under what commonly went
// wrong: no temperature, the temperature twice, the usual ones if the log states none, another
// profile. If all its bits then agree, that is the finding, and it is exact. A temperature that
// brings the row near (an engine with other arithmetic) is the finding too, with both distances.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samebits/gate/compare.h"
#include "samebits/gate/engine.h"

namespace sb {

struct AuditOptions {
  std::optional<int64_t> sample = 8;  // rows; at least 1; absent: all
  uint64_t seed = 0;
  // What the log does not state; absent: 1 and the checkpoint's. A log that says otherwise is
  // refused.
  std::optional<float> temperature;
  std::optional<std::vector<int32_t>> suppress;
  std::function<void(int64_t done, int64_t total)> progress;  // tokens; may be empty
  std::function<bool()> interrupted;                          // may be empty
};

struct AuditReport {
  Code code = Code::kEqual;
  std::string finding;
  std::vector<std::string> notes;
  std::string log, model;  // as given
  int64_t log_rows = 0;
  uint64_t seed = 0;
  std::vector<int64_t> drawn;       // places of the sampled rows in the log, from 0, ascending
  std::vector<float> temperatures;  // of the drawn rows
  Comparison comparison;            // A is the log, B what was rescored; rows as drawn
  double seconds = 0;
};

// `count` of 0 … n−1, ascending: decided by seed, n and count.
std::vector<int64_t> draw_rows(int64_t n, int64_t count, uint64_t seed);

// Whether a log with this header can be audited with the engine's checkpoint.
Status check_audit_header(const RunHeader& header, const Engine& engine, const std::string& log);

// The rows must hold log-probabilities; `log_name` and `model` are for the report.
Result<AuditReport> audit(Engine& engine, const TokenLog& log, const std::string& log_name,
                          const std::string& model, const AuditOptions& options);

std::string audit_text(const AuditReport& report);
std::string audit_json(const AuditReport& report);
std::string audit_html(const AuditReport& report);

}  // namespace sb
