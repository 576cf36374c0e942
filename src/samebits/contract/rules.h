// The rules: what each operator computes, as constexpr values. An implementation takes its rule as
// a template argument, and the text that `samebits contract show` prints is made from the same
// value, so oracle, kernel and documentation cannot drift apart. A rule is compile time; shapes are
// run time.
//
// R(·) is fp32 → bf16, nearest even. Unless `fma` is written, every product, sum and division
// rounds on its own in fp32.
#pragma once

#include <cstdint>

#include "samebits/arith/gelu.h"

namespace sb {

// How partial results of a reduction are added; always on logical indices, never on lanes.
enum class Tree : uint8_t {
  kChain,     // one after the other, ascending
  kAdjacent,  // A: adjacent pairs, level by level
  kFold64,    // T64: fold over index bits 0, 3, 4, 5, 1, 2
  kFold256,   // T256: fold over index bits 0, 3, 4, 5, 6, 7, 1, 2
};

// x = R(E[id] · s), s = R(√hidden).
struct EmbedRule {
  int version = 1;
  bool round_scale = true;
};

// slot e mod `slots` by fma(x, x, slot); sum = tree(slots); r = 1/√(sum/D + ε); y = R((x·r)·w).
struct RmsNormRule {
  int version = 1;
  int slots = 256;
  Tree tree = Tree::kAdjacent;
};

// Leaves of K, each a chain of matrix steps from +0; leaves added by the tree; R once if round_out.
struct GemmRule {
  int version = 1;
  int step_k = 16;
  int leaves = 1;
  Tree tree = Tree::kAdjacent;
  bool round_out = true;
};

// out = R(a·c − b·s), R(b·c + a·s) on pairs (i, i + D/2); other dims are copied.
struct RopeRule {
  int version = 1;
};

// k̂ and v̂ copied to their slot.
struct KvWriteRule {
  int version = 1;
};

// See docs/contract.md, "Attention": blocks of keys at absolute multiples of block_keys, E2
// softmax.
struct AttentionRule {
  int version = 1;
  int block_keys = 64;
  int step_k = 16;
  Tree row_sum = Tree::kFold64;
  uint32_t log2e_bits = 0x3fb8aa3b;  // 0x1.715476p+0
  bool segmented = false;            // global layers: states of segments merged by left fold
};

// h = R(x + p).
struct ResidualRule {
  int version = 1;
};

// y = R(x · s).
struct LayerScaleRule {
  int version = 1;
};

// u2 = (x·x)·x; t = k0·fma(k1, u2, x); g = x/(1 + exp(−2t)); R(R(g)·up).
struct GeluMulRule {
  int version = 1;
  uint32_t k0_bits = arith::kGeluK0Bits;  // √(2/π)
  uint32_t k1_bits = arith::kGeluK1Bits;  // 0.044715
};

// c = cap·tanh(z/cap), c/T once; tiles of `tile` columns give (m, S), merged in pairs up to
// `shards` shards and beyond; logp = (c_y − m) − log S.
struct HeadRule {
  int version = 1;
  int step_k = 16;
  int tile = 256;
  int shards = 8;
  Tree tile_sum = Tree::kFold256;
};

// argmax of c/T + g over ids, lowest id on ties; g = −log(−log u) from Philox4x32-10.
struct SampleRule {
  int version = 1;
  int uniform_bits = 23;
};

inline constexpr EmbedRule kEmbedRule{};
inline constexpr RmsNormRule kRmsNormRule{};
inline constexpr GemmRule kGemmRule{};                 // q, k, v, gate, up
inline constexpr GemmRule kGemmTreeRule{.leaves = 8};  // o, down
inline constexpr RopeRule kRopeRule{};
inline constexpr KvWriteRule kKvWriteRule{};
inline constexpr AttentionRule kSlidingAttentionRule{};
inline constexpr AttentionRule kGlobalAttentionRule{.segmented = true};
inline constexpr ResidualRule kResidualRule{};
inline constexpr LayerScaleRule kLayerScaleRule{};
inline constexpr GeluMulRule kGeluMulRule{};
inline constexpr HeadRule kHeadRule{};
inline constexpr SampleRule kSampleRule{};

}  // namespace sb
