// Which element of a 16 × N × 16 matrix step each lane holds, for the instructions behind
// Block::mma. Kernels and fragment loads read these maps; the CPU emulation decodes fragments by
// its own copy of the vendors' layouts (emulated_mma.h), so an error here shows as a wrong number.
//
//   Sm90Map    mma.sync.m16n8k16.row.col.f32.bf16.bf16.f32, 32 lanes: lane = 4·group + member.
//   Gfx942Map  v_mfma_f32_16x16x16_bf16, 64 lanes: lane = 16·quarter + column.
//
// Elements 2i and 2i + 1 of A and B are neighbours in k, so pairs load as one 32-bit word.
#pragma once

#include "samebits/backend/simt/qualifiers.h"

namespace sb::simt {

struct Place {
  int row, col;  // of A: (m, k); of B: (k, n); of C: (m, n)
};

struct Sm90Map {
  static constexpr int kWarp = 32, kM = 16, kN = 8, kK = 16;
  static constexpr int kA = 8, kB = 4, kC = 4;  // elements a lane holds
  SB_SIMT static constexpr Place a(int lane, int i) {
    return {lane / 4 + (i & 2 ? 8 : 0), 2 * (lane % 4) + (i & 1) + (i & 4 ? 8 : 0)};
  }
  SB_SIMT static constexpr Place b(int lane, int i) {
    return {2 * (lane % 4) + (i & 1) + (i & 2 ? 8 : 0), lane / 4};
  }
  SB_SIMT static constexpr Place c(int lane, int i) {
    return {lane / 4 + (i & 2 ? 8 : 0), 2 * (lane % 4) + (i & 1)};
  }
};

struct Gfx942Map {
  static constexpr int kWarp = 64, kM = 16, kN = 16, kK = 16;
  static constexpr int kA = 4, kB = 4, kC = 4;
  SB_SIMT static constexpr Place a(int lane, int i) { return {lane % 16, 4 * (lane / 16) + i}; }
  SB_SIMT static constexpr Place b(int lane, int i) { return {4 * (lane / 16) + i, lane % 16}; }
  SB_SIMT static constexpr Place c(int lane, int i) { return {4 * (lane / 16) + i, lane % 16}; }
};

}  // namespace sb::simt
