// Recorded outputs of real Hopper matrix steps (goldens/README.md describes the file) against the
// scalar model and every SIMD kernel of this CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/base/result.h"

namespace sb::arith {

struct MmaGoldenReport {
  struct Mismatch {
    std::string who;  // "step", or the kernel: "avx512 b_rows"
    int64_t trial = 0;
    int row = 0, col = 0;
    uint32_t expect = 0, got = 0;  // fp32 bits
  };
  int64_t trials = 0;
  int64_t outputs = 0;               // recorded values, 128 a trial
  int64_t mismatches = 0;            // outputs that at least one of `checked` misses
  std::vector<std::string> checked;  // who was compared
  std::optional<Mismatch> first;
};

// kBrokenData for a file that is not whole: bad magic, no trials, too short or too long.
Result<MmaGoldenReport> check_mma_golden(const std::string& path);
// The same on bytes in memory; `where` names them in messages.
Result<MmaGoldenReport> check_mma_golden_bytes(std::string_view file, const std::string& where);

}  // namespace sb::arith
