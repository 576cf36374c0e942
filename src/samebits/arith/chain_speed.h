// Speed of the chain kernels on one core, for `samebits bench arith`.
#pragma once

#include <vector>

#include "samebits/arith/profile.h"

namespace sb::arith {

struct ChainSpeed {
  Profile profile;
  Isa isa;
  int rows;
  double gmac_s_core;  // 10^9 multiply-adds a second, fastest call
};

// b_rows at 1, 4 and 16 rows for every profile and every Isa of this CPU, on the calling thread,
// about `seconds_each` for each figure. First asserts that all Isas give equal bits on the same
// data.
std::vector<ChainSpeed> measure_chain_speed(double seconds_each);

}  // namespace sb::arith
