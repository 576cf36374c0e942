// What the matrix units do with fragments: the vendors' layouts, written a second time and apart
// from lane_map.h on purpose. A kernel that loads or reads a fragment by a wrong map gets wrong
// numbers here, as it would on the hardware.
#pragma once

#include "samebits/arith/chain.h"
#include "samebits/backend/simt/block.h"

namespace sb::simt {

template <class Map>
struct Fragments {
  bf16 a[Map::kWarp][Map::kA], b[Map::kWarp][Map::kB];
  float c[Map::kWarp][Map::kC];
};

// The registers of one warp as matrices: A [16][16], B as [N][16], C [16][N].
template <class Map>
struct Matrices {
  bf16 *a[16][16], *b[Map::kN][16];
  float* c[16][Map::kN];
};

// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating-point type": registers come in the
// order (rows of the upper half, lower half) × (k 0–7, k 8–15).
inline Matrices<Sm90Map> decode(Fragments<Sm90Map>& f) {
  Matrices<Sm90Map> m;
  for (int group = 0; group < 8; ++group) {
    for (int member = 0; member < 4; ++member) {
      const int lane = group * 4 + member;
      int r = 0;
      for (const int k0 : {0, 8}) {
        for (const int row : {group, group + 8}) {
          for (const int k : {k0 + 2 * member, k0 + 2 * member + 1}) m.a[row][k] = &f.a[lane][r++];
        }
      }
      r = 0;
      for (const int k0 : {0, 8}) {
        for (const int k : {k0 + 2 * member, k0 + 2 * member + 1}) m.b[group][k] = &f.b[lane][r++];
      }
      r = 0;
      for (const int row : {group, group + 8}) {
        for (const int n : {2 * member, 2 * member + 1}) m.c[row][n] = &f.c[lane][r++];
      }
    }
  }
  return m;
}

// CDNA3 ISA, v_mfma_f32_16x16x16_bf16: four lanes share a row of A (a column of B), each with four
// neighbouring k; a lane's four results lie below each other.
inline Matrices<Gfx942Map> decode(Fragments<Gfx942Map>& f) {
  Matrices<Gfx942Map> m;
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (int line = 0; line < 16; ++line) {
      const int lane = quarter * 16 + line;
      for (int r = 0; r < 4; ++r) {
        m.a[line][quarter * 4 + r] = &f.a[lane][r];
        m.b[line][quarter * 4 + r] = &f.b[lane][r];
        m.c[quarter * 4 + r][line] = &f.c[lane][r];
      }
    }
  }
  return m;
}

// C ← matrix step of the fragments, by the chain kernels that are proven equal to the step's model.
template <class Map>
void emulate_mma(Fragments<Map>& f, const arith::ChainKernels& chains) {
  const Matrices<Map> m = decode(f);
  bf16 a[16][16], b[Map::kN][16];
  float c[16][Map::kN];
  const bf16 *rows[16], *cols[Map::kN];
  for (int r = 0; r < 16; ++r) {
    rows[r] = a[r];
    for (int k = 0; k < 16; ++k) a[r][k] = *m.a[r][k];
    for (int n = 0; n < Map::kN; ++n) c[r][n] = *m.c[r][n];
  }
  for (int n = 0; n < Map::kN; ++n) {
    cols[n] = b[n];
    for (int k = 0; k < 16; ++k) b[n][k] = *m.b[n][k];
  }
  chains.b_rows(rows, 16, cols, Map::kN, 16, &c[0][0], Map::kN);
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < Map::kN; ++n) *m.c[r][n] = c[r][n];
  }
}

}  // namespace sb::simt
