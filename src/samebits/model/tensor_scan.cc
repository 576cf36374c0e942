#include "samebits/model/tensor_scan.h"

#include <algorithm>

namespace sb {

void TensorScan::merge(const TensorScan& later) {
  digest.add(later.digest);
  if (first_bad < 0) first_bad = later.first_bad;
  if (later.largest > largest) largest = later.largest, largest_at = later.largest_at;
}

TensorScan scan_bf16(const bf16* values, int64_t first, int64_t count) {
  TensorScan out;
  uint64_t a = 0, b = 0;
  uint16_t top = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = values[i].bits, n = static_cast<uint64_t>(first + i) + 1;
    a += mix64(bits ^ (n * 0x9E3779B97F4A7C15ull));
    b += mix64(bits + n * 0xC2B2AE3D27D4EB4Full);
    top = std::max<uint16_t>(top, static_cast<uint16_t>(bits & 0x7fffu));
  }
  out.digest = {a, b};
  out.largest_at = first;
  // Rare paths look again: a non-finite value, or where the largest one is.
  if (top >= 0x7f80u) {
    const auto bad =
        std::find_if(values, values + count, [](bf16 v) { return (v.bits & 0x7fffu) >= 0x7f80u; });
    out.first_bad = first + (bad - values);
    return out;
  }
  out.largest = top;
  if (widen(bf16{top}) > kHugeWeight) {
    const auto at =
        std::find_if(values, values + count, [&](bf16 v) { return (v.bits & 0x7fffu) == top; });
    out.largest_at = first + (at - values);
  }
  return out;
}

}  // namespace sb
