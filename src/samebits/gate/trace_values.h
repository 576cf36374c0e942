// Values in a trace: which boundaries were asked for, how large they are, and the memory they are
// collected in. Values come step by step and are filed boundary by boundary, so they wait in a
// scratch file beside the trace: memory stays bounded however long the run is. While the trace is
// written, the disk holds them twice.
#pragma once

#include <string>
#include <vector>

#include "samebits/base/file.h"
#include "samebits/chain/score.h"

namespace sb {

// Boundaries of this model that a pattern names, in causal order: "layers.*.out", "head.logit".
// * is any text, ? one character, [0-4] one of a range. A pattern that names none is kUsage.
Result<std::vector<Boundary>> match_boundaries(const Architecture& arch,
                                               const std::vector<std::string>& patterns);

struct TraceValueStore {
  ScratchFile scratch;
  std::vector<TraceValues> values;  // into scratch; for RunOptions::trace_values
  int64_t bytes = 0;
};
// Room for all rows of `sequences`, beside the file `trace`. kEnvironment if the disk is too small.
Result<TraceValueStore> make_value_store(const Architecture& arch,
                                         const std::vector<Sequence>& sequences,
                                         const std::vector<std::string>& patterns,
                                         const std::string& trace);

}  // namespace sb
