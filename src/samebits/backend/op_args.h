// Arguments of every operator, as implementations receive them (ops/ has checked them). Legend of
// shapes: T rows of the batch, H hidden, N output columns, K reduced, Q query heads, G KV heads,
// D head dim, S sequences, R scored rows, V vocabulary. Views named `acc` and taps may be empty:
// an implementation writes them only when given.
#pragma once

#include <array>
#include <cstdint>

#include "samebits/backend/kv_view.h"
#include "samebits/base/view.h"

namespace sb {

// A declared deviation from the contract, executed while the run still claims the contract: the
// negative control that shows each detector can fail. Only the fault injector sets one.
enum class Deviation : uint8_t {
  kNone,
  kEmbedScaleUnrounded,  // √hidden in fp32
  kSoftcapMissing,
  kSoftcapBf16,     // softcap computed and kept in bf16
  kSoftcapTwice,    // softcap of the softcap
  kSoftcapXTanh,    // x · tanh(x/cap)
  kNormOnePlusW,    // weights of a norm are read as 1 + w
  kRopePairing,     // rotated pairs are (i, i + pairs) instead of (i, i + D/2)
  kWindowMinusOne,  // one key fewer
  kWindowPlusOne,   // one key more
  kScalarDropped,   // layer_scalar read as 1
  kLeafOrder,       // leaves of a GEMM in one running chain, ranks added left to right
  kKeyLeak,         // packed rows: key 0 is read one row early, from the sequence before
  kDropLastBlock,   // one query alone: its last block of keys is skipped if another one is left
};

struct EmbedArgs {
  View table;       // bf16 [V, H]
  View token, seq;  // i32 [T]; rows with seq < 0 are padding and are left alone
  View out;         // bf16 [T, H]
  Deviation deviation = Deviation::kNone;
};

struct RmsNormArgs {
  View x;    // bf16 [T, heads, D]
  View w;    // bf16 [D], or empty: weightless
  View out;  // bf16 [T, heads, D]
  float eps = 0;
  Deviation deviation = Deviation::kNone;
};

// A weight in checkpoint layout; row ranges of a fused weight are just pointers.
struct WeightView {
  const bf16* ptr = nullptr;
  int64_t n = 0, k = 0, ld = 0;  // rows (outputs), columns (inputs), elements between rows
};

struct GemmArgs {
  View x;                         // bf16 [T, K]
  int count = 0;                  // weights used, 1 to 3
  std::array<WeightView, 3> w{};  // all with this K
  std::array<View, 3> out{};      // bf16 [T, N]
  std::array<View, 3> acc{};      // f32 [T, N] or empty
};

// One rank's subtree of an 8-leaf GEMM: fp32, not rounded.
struct GemmPartialArgs {
  View x;          // bf16 [T, K of this rank]
  WeightView w;    // its columns
  int leaves = 1;  // leaves in this subtree: 8 / ranks, or 1 when K has one leaf
  View partial;    // f32 [T, N]
  Deviation deviation = Deviation::kNone;
};

struct GemmFinishArgs {
  View partials;  // f32 [ranks, T, N], in rank order
  View out;       // bf16 [T, N]
  View acc;       // f32 [T, N] or empty
  Deviation deviation = Deviation::kNone;
};

struct RopeArgs {
  View x;         // bf16 [T, heads, D]
  View table;     // f32 [blocks, 2, block size, pairs]: cos, sin of positions block by block
  View pos, seq;  // i32 [T]
  View out;       // bf16 [T, heads, D]
  Deviation deviation = Deviation::kNone;
};

struct KvWriteArgs {
  View k, v;  // bf16 [T, G, D]
  View slot;  // i32 [T]: page · page_size + offset; < 0 is skipped
  KvView kv;
};

struct AttentionArgs {
  View q;         // bf16 [T, Q, D]
  View pos, seq;  // i32 [T]
  KvView kv;
  int num_kv_heads = 0;
  int window = 0;   // sliding; 0 on global layers
  int segment = 0;  // global: keys per segment; 0 on sliding layers
  View out;         // bf16 [T, Q, D]
  View acc;         // f32 [T, Q, D] or empty: (O + 0)·inv before rounding
  View lse;         // f32 [T, Q] or empty
  Deviation deviation = Deviation::kNone;
};

struct ResidualArgs {
  View x, p, out;  // bf16 [T, H]
};

struct LayerScaleArgs {
  View x, scalar, out;  // bf16 [T, H], [1], [T, H]
  Deviation deviation = Deviation::kNone;
};

struct GeluMulArgs {
  View gate, up;  // bf16 [T, N]
  View gelu;      // bf16 [T, N] or empty
  View out;       // bf16 [T, N]
};

// One rank's vocabulary shards: tiles to (m, S) per shard, and c of the target where it owns it.
struct HeadArgs {
  View z;             // bf16 [R, H]
  WeightView w;       // rows [vocab_begin, vocab_begin + n) of the tied weight
  int64_t vocab = 0;  // V of the whole model
  int64_t vocab_begin = 0;
  int shard_begin = 0, shards = 8;  // this rank's part of the 8 shards
  View target;                      // i32 [R]; < 0: none
  View suppress;                    // u8 [V], 1 = suppressed; or empty
  float softcap = 30.0f, temperature = 1.0f;
  View tile_ms;        // f32 [R, head_tiles(vocab, shards), 2]: scratch
  View shard_ms;       // f32 [R, shards, 2]
  View c_target;       // f32 [R]; written where this rank owns the target
  View logit, capped;  // f32 [R, n] or empty: z, and c before the temperature
  Deviation deviation = Deviation::kNone;
};

struct HeadFinishArgs {
  View shard_ms;   // f32 [ranks, R, 8 / ranks, 2]
  View c_target;   // f32 [ranks, R]
  View owner;      // i32 [R]: rank that owns the target; < 0: no target, logp is left alone
  View logp, lse;  // f32 [R]; either may be empty
  View max_sum;    // f32 [R, 2]: (m, S) of the whole vocabulary, or empty
};

struct SampleArgs {
  View capped;  // f32 [R, n]: c before the temperature, of ids from vocab_begin
  int64_t vocab_begin = 0;
  View suppress;  // u8 [V] or empty
  View row_hash;  // u64 [R]: xxh64 of the row's id
  View position;  // i32 [R]: of the token being drawn
  float temperature = 1.0f;
  uint64_t seed = 0;
  bool greedy = false;
  View best;     // f32 [R]: score of the drawn id, for ranks to choose by
  View token;    // i32 [R]
  View c_token;  // f32 [R]: c/T of the drawn id
};

// out[r] = x[index[r]]: the rows whose logits are needed.
struct GatherArgs {
  View x;      // bf16 [T, H]
  View index;  // i32 [R], each in 0 … T−1
  View out;    // bf16 [R, H]
};

// Row digests of a value, for traces: base/digest.h, index = column_begin + column.
struct DigestArgs {
  View x;  // bf16 or f32 [T, W], rows contiguous
  int64_t column_begin = 0;
  View digest;      // u64 [T]
  View non_finite;  // u8 [T]
};

}  // namespace sb
