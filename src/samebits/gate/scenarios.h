// The scenarios of verify, as data: each says how to run the rows, against which reference, and
// which rows of it are compared.
#pragma once

#include <string>
#include <vector>

#include "samebits/chain/score.h"

namespace sb {

// A reference is computed once per semantics (temperature, suppressed ids).
struct Meaning {
  float temperature = 1.0f;
  std::vector<int32_t> suppress;
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

struct Scenario {
  std::string group, name;
  Schedule schedule;
  bool packed = true;
  int threads = 0;  // 0: the engine's
  int padding_rows = 0;
  std::vector<uint16_t> pad_fill;  // bf16 bits
  int64_t prefix = 0;
  int join_every = 0;
  KvCacheOptions cache;
  Meaning meaning;
  bool other_neighbours = false;  // the rows run among other rows and in another order
  bool generate = false;          // rows are drawn by rollout, then rescored
  bool traced = false;            // every boundary is compared, not the log-probabilities alone
  bool long_row = false;          // runs the long row, else the short ones
  bool hybrid = false;            // part of the suite hybrid-attention
};

// All scenarios for a model with a window of `window` keys. long_row: tokens of the long row.
std::vector<Scenario> all_scenarios(const Architecture& arch, int64_t long_row);

}  // namespace sb
