// What an engine did instead, told by rescoring one row of its log another way.
#pragma once

#include <string>
#include <vector>

#include "samebits/gate/audit.h"
#include "samebits/gate/score_run.h"

namespace sb {

// Rescores rows one at a time and keeps count of tokens over all of them.
class Rescorer {
 public:
  Rescorer(Engine& engine, const AuditOptions& options, int64_t total)
      : engine_(engine), options_(options), total_(total) {}
  // The train schedule under another profile, temperature or list of suppressed ids.
  RunOptions run_of(Profile profile, const Semantics& semantics) const;
  Result<std::vector<float>> score(const TokenRow& row, const RunOptions& run);

 private:
  Engine& engine_;
  const AuditOptions& options_;
  int64_t total_, done_ = 0;
};

// A row whose bits are not those of what it states.
struct Suspect {
  const TokenRow& row;
  const Semantics& semantics;
  bool temperature_stated;
  const std::vector<float>& rescored;  // as audited
};

struct Diagnosis {
  Code code = Code::kEqual;  // kEqual: nothing was found
  std::string text;
};

// Temperatures (4), then profiles (2), that give the row's bits; or the temperature (4) that comes
// near them and leaves less than a fifth of the distance.
Result<Diagnosis> diagnose(const Engine& engine, Rescorer& rescorer, const Suspect& suspect);

}  // namespace sb
