// Whether planted faults can show in a run at all. A fault that cannot act leaves equal bits, which
// would look like a detector that passed; so such a run is refused, with what would make it act.
#pragma once

#include "samebits/chain/score.h"

namespace sb {

// How a rollout differs from scoring the rows it will have drawn.
struct Draws {
  bool drawn = false;  // the last token of a row is drawn and never fed back
  bool stops = false;  // rows may end early, so any row may come to decode alone
};

// Every fault of run.session must be able to change a log-probability of these rows. Refused:
// kUsage where the schedule is not one it acts in, kRefused where rows, temperature, cache pages or
// model give it nothing to act on. Of a rollout, `rows` are the prompts followed by as many tokens
// of any value as may be drawn.
Status check_faults_act(const Architecture& arch, const std::vector<Sequence>& rows,
                        const RunOptions& run, const Draws& draws = {});
Status check_fault_acts(const Fault& fault, const Architecture& arch,
                        const std::vector<Sequence>& rows, const RunOptions& run,
                        const Draws& draws = {});

std::string schedule_names(uint8_t bits);  // "all", or "train, decode"

}  // namespace sb
