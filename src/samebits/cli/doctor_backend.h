// What `samebits doctor` says of a backend other than the CPU, and the acceptance of its operators.
#pragma once

#include <string>
#include <vector>

#include "samebits/cli/console.h"

namespace sb {

struct BackendCheck {
  std::string shapes = "tiny";     // a preset's name: whose operators to accept
  std::vector<int64_t> rows;       // empty: 1 and 17, two batch shapes for each operator
  std::vector<int64_t> grid_caps;  // empty: none
  int repeats = 2;
  int64_t seed = 0, head_rows = 17;
  std::string only;  // one operator
};

// Describes the device, then runs every operator there and on the oracle. kEqual if all bytes are
// equal, kDrift if not, kRefused or kEnvironment where it cannot run.
Result<Code> examine_backend(const BackendCheck& check, const GlobalOptions& options);

}  // namespace sb
