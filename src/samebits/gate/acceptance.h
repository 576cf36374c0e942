// Acceptance: every operator runs on the oracle and on another backend from the same bytes, and
// every byte has to be equal afterwards: outputs, inputs, rows that the run did not have, and guard
// zones round every buffer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samebits/backend/devices.h"
#include "samebits/gate/operator_case.h"

namespace sb {

struct AcceptanceOptions {
  BackendInfo backend;
  Profile profile = Profile::kSm90;
  CaseOptions cases;
  std::vector<int64_t> rows = {1,  2,   8,   16, 17,
                               64, 255, 256, 257};  // runs of a case that can be cut
  std::vector<int64_t> grid_caps = {0};             // 0: no cap
  int repeats = 1;  // of the largest run, all of which have to be equal
};

struct AcceptanceLine {
  std::string op, shape;
  int64_t runs = 0, outputs = 0;                   // outputs: compared elements of all runs
  int64_t differing = 0;                           // bytes
  std::string first;                               // where the first difference is, and both values
  double oracle_seconds = 0, backend_seconds = 0;  // of all runs, copies apart
};

struct AcceptanceReport {
  std::vector<AcceptanceLine> lines;
  int64_t outputs() const;
  int64_t differing() const;
  bool passed() const { return outputs() > 0 && differing() == 0; }
};

using AcceptanceProgress = std::function<void(int64_t done, int64_t total, const AcceptanceLine&)>;

// `line` is called after case `done` of `total`. Refusals of operators are refusals of the whole;
// so is an operator name (options.cases.only) that no case has, which lists the names.
Result<AcceptanceReport> accept_operators(const Architecture& arch, Device& device,
                                          ThreadPool& pool, const AcceptanceOptions& options,
                                          const AcceptanceProgress& line);

}  // namespace sb
