// Schedules: in which steps the tokens of each sequence go through the chain. Training packs all
// rows in one step; a rollout engine cuts them at will. The bits must not notice.
#pragma once

#include <string>
#include <vector>

#include "samebits/chain/fault.h"
#include "samebits/chain/sequence.h"

namespace sb {

struct Schedule {
  ScheduleKind kind = ScheduleKind::kTrain;
  std::vector<int64_t> cuts;  // chunked: sizes, repeated until the row ends
  int64_t tail = 0;           // decode: the last `tail` tokens one by one; 0: all after the prompt
  std::string name()
      const;  // "train", "prefill", "chunked:7", "chunked:3,1,9", "decode", "decode:80"
};

// Refuses unknown names and chunk sizes that are not positive.
Result<Schedule> parse_schedule(const std::string& text);

// Token counts of the steps that take one sequence from `start` to its end (paged schedules).
std::vector<int64_t> step_sizes(const Schedule& schedule, const Sequence& sequence, int64_t start);
// Decode: position of the first token that is taken by itself, behind the prompt or at the tail.
int64_t first_decoded(const Schedule& schedule, const Sequence& sequence, int64_t start);

}  // namespace sb
