// bf16 as a bit pattern. R(x) in the contracts is round_bf16: fp32 → bf16, nearest even, every NaN
// becomes 0x7fff. Integer arithmetic only, so no compiler or flag can change it.
#pragma once

#include <cstdint>

#include "samebits/base/bits.h"

namespace sb {

struct bf16 {
  uint16_t bits = 0;
  friend constexpr bool operator==(bf16, bf16) = default;
};

inline constexpr uint16_t kBf16Nan = 0x7fff;

SB_HD constexpr float widen(bf16 x) { return bits_float(uint32_t{x.bits} << 16); }

SB_HD constexpr bf16 round_bf16(float x) {
  const uint32_t u = float_bits(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return bf16{is_nan_bits(u) ? kBf16Nan : static_cast<uint16_t>(rounded)};
}

// R as a value: the bf16 rounding of x, widened back.
SB_HD constexpr float rounded(float x) { return widen(round_bf16(x)); }

}  // namespace sb
