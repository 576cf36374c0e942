// One pass over the values of a tensor: its digest, the first NaN or infinity, the largest
// magnitude.
#pragma once

#include "samebits/base/bf16.h"
#include "samebits/base/digest.h"

namespace sb {

struct TensorScan {
  TensorDigest digest;
  int64_t first_bad = -1;               // index of the first non-finite element, or −1
  uint16_t largest = 0;                 // bits of the largest finite magnitude
  int64_t largest_at = 0;               // where it first occurs
  void merge(const TensorScan& later);  // of a piece that starts after this one
};

// Elements [first, first + count) of a tensor; `values` points at element `first`.
TensorScan scan_bf16(const bf16* values, int64_t first, int64_t count);

// A finite weight above this is loaded with a warning: valid bf16, but no trained model has it.
inline constexpr float kHugeWeight = 1e4f;

}  // namespace sb
