// CPU versions of the helpers in moves.h.
#include "samebits/backend/moves.h"

#include <algorithm>

#include "samebits/base/digest.h"

namespace sb {
namespace {

template <class T>
void digest_row(const T* x, int64_t width, int64_t column, uint64_t* digest, uint8_t* bad) {
  uint64_t sum = 0;
  bool non_finite = false;
  for (int64_t i = 0; i < width; ++i) {
    uint32_t bits;
    if constexpr (sizeof(T) == 2) {
      bits = x[i].bits;
      non_finite |= (bits & 0x7f80u) == 0x7f80u;
    } else {
      bits = float_bits(x[i]);
      non_finite |= !is_finite_bits(bits);
    }
    sum += digest_element(bits, static_cast<uint64_t>(column + i));
  }
  *digest = sum;
  *bad = non_finite;
}

Status cpu_digest_rows(const Exec& exec, const DigestArgs& a) {
  const int64_t rows = a.x.shape[0], width = a.x.shape[1];
  return for_rows(exec, rows, 2.0 * static_cast<double>(width), [&](int64_t t) {
    uint64_t* digest = a.digest.as<uint64_t>() + t;
    uint8_t* bad = a.non_finite.as<uint8_t>() + t;
    if (a.x.dtype == Dtype::kBf16) {
      digest_row(a.x.as<bf16>() + t * a.x.stride[0], width, a.column_begin, digest, bad);
    } else {
      digest_row(a.x.as<float>() + t * a.x.stride[0], width, a.column_begin, digest, bad);
    }
  });
}

Status cpu_gather_rows(const Exec& exec, const GatherArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  const int32_t* index = a.index.as<int32_t>();
  return for_rows(exec, rows, 0.2 * static_cast<double>(width), [&](int64_t r) {
    const bf16* x = a.x.as<bf16>() + index[r] * a.x.stride[0];
    std::copy(x, x + width, a.out.as<bf16>() + r * a.out.stride[0]);
  });
}

constexpr Moves kMoves[] = {{DeviceId::kCpu, kCpuArch, cpu_digest_rows, cpu_gather_rows}};

}  // namespace

std::span<const Moves> cpu_moves() { return kMoves; }

}  // namespace sb
