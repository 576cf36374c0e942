// Loads of operand pieces from global into shared memory, 16 bytes a thread where both sides allow.
#pragma once

#include "samebits/arith/fp.h"
#include "samebits/backend/op_args.h"
#include "samebits/backend/simt/block.h"
#include "samebits/base/bits.h"

namespace sb::simt {

// Rows of a bf16 matrix: `count` rows from p, `ld` elements apart.
struct MatrixRows {
  const bf16* p = nullptr;
  int64_t count = 0, ld = 0;
};

SB_SIMT MatrixRows rows_from(const View& x, int64_t row) {
  return {ptr<bf16>(x) + row * x.stride[0], x.shape[0] - row, x.stride[0]};
}
SB_SIMT MatrixRows rows_from(const WeightView& w, int64_t row) {
  return {w.ptr + row * w.ld, w.n - row, w.ld};
}

struct alignas(16) Vector8 {
  bf16 v[8];
};

// to[r][j] = rows[r][k + j] for r < Rows, j < Columns; zeros past the rows and from `end` on.
template <int Rows, int Columns, int Pitch, class B>
SB_SIMT void load_piece(B& b, bf16* to, const MatrixRows& rows, int64_t k, int64_t end) {
  static_assert(Columns % 8 == 0 && Pitch % 8 == 0);
  constexpr int kVectors = Columns / 8;
  const bool aligned =
      (reinterpret_cast<uintptr_t>(rows.p + k) | static_cast<uintptr_t>(rows.ld * 2)) % 16 == 0;
  b.each([&](int t) {
    for (int i = t; i < Rows * kVectors; i += B::kThreads) {
      const int r = i / kVectors, j = i % kVectors * 8;
      Vector8 v{};
      if (r < rows.count && k + j < end) {
        const bf16* from = rows.p + r * rows.ld + k + j;
        if (aligned && k + j + 8 <= end) {
          v = *reinterpret_cast<const Vector8*>(from);
        } else {
          for (int e = 0; e < 8 && k + j + e < end; ++e) v.v[e] = from[e];
        }
      }
      *reinterpret_cast<Vector8*>(to + r * Pitch + j) = v;
    }
  });
}

}  // namespace sb::simt
