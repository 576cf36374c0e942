// The fixed shapes in which leaf results are added. Each level is one pass over whole arrays with
// no dependence between its additions, so it vectorises and no vector width can change a bit.
//
//   tree_adjacent<N>  A(v): neighbours are added, level by level.
//   tree64, tree256   T64, T256 of softmax and head: fold index bit 0, then 3, 4, 5 (6, 7), then 1,
//                     then 2. Folding bit b adds v[i + 2^b] to v[i]. The order is that of the
//                     fragments of a tensor-core tile, where only bits 1 and 2 lie in other lanes:
//                     a kernel needs two shuffles.
//
// All consume v (its elements are unspecified afterwards).
#pragma once

#include "samebits/arith/fp.h"

namespace sb::arith {

namespace detail {

// Folds bit B of an N-element index and closes the gap: w[high, low] = v[high, 0, low] + v[high, 1,
// low], low having B bits. The bits above B move down by one.
template <int N, int B>
SB_HD inline void fold(const float* __restrict__ v, float* __restrict__ w) {
  constexpr int kLow = 1 << B;
  static_assert(N >= 2 * kLow && (N & (N - 1)) == 0);
  for (int high = 0; high < N / (2 * kLow); ++high) {
    for (int low = 0; low < kLow; ++low) {
      const float* pair = v + high * 2 * kLow + low;
      w[high * kLow + low] = add(pair[0], pair[kLow]);
    }
  }
}

// 16 values whose index bits are the tile's bits 1, 2 and its last two: fold those two, then 1, 2.
SB_HD inline float tree_tail16(const float* v) {
  float a[8], b[4], c[2];
  fold<16, 2>(v, a);
  fold<8, 2>(a, b);
  fold<4, 0>(b, c);
  return add(c[0], c[1]);
}

}  // namespace detail

template <int N>
SB_HD inline float tree_adjacent(float* v) {
  static_assert(N >= 1 && (N & (N - 1)) == 0);
  if constexpr (N == 1) {
    return v[0];
  } else {
    float half[N / 2];
    detail::fold<N, 0>(v, half);
    return tree_adjacent<N / 2>(half);
  }
}

SB_HD inline float tree64(float* v) {
  float a[32], b[16];
  detail::fold<64, 0>(v, a);
  detail::fold<32, 2>(a, b);
  return detail::tree_tail16(b);
}

SB_HD inline float tree256(float* v) {
  float a[128], b[64], c[32], d[16];
  detail::fold<256, 0>(v, a);
  detail::fold<128, 2>(a, b);
  detail::fold<64, 2>(b, c);
  detail::fold<32, 2>(c, d);
  return detail::tree_tail16(d);
}

}  // namespace sb::arith
