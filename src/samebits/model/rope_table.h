// Rotary tables: cos and sin of angle = inv_freq · p, one fp32 product, each function rounded once
// to fp32. Built in blocks of 1024 positions when first asked for, so a short run never pays for a
// context of 262144; a block has a digest, and the fingerprint holds some of them.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "samebits/base/digest.h"
#include "samebits/model/architecture.h"

namespace sb {

// inv_freq_i = RN32(theta^(−2i/head_dim)), i < pairs, correctly rounded. Sizes of the 31B model are
// literals, others come from double-double arithmetic that is the same on every IEEE platform. The
// exponent counts the whole head, also where only some pairs rotate (p-RoPE). Refuses a theta or
// head size outside (1, 1e12] and even sizes up to 65536, and a value too near a rounding boundary.
Result<std::vector<float>> rope_inv_freq(double theta, int head_dim, int pairs);

inline constexpr int64_t kRopeBlock = 1024;  // positions

// What a layer type's table is made of: theta^(−2i/exponent_dim), i < pairs.
struct RopeSpec {
  double theta = 0;
  int exponent_dim = 0;  // the whole head, also where only some pairs rotate
  int pairs = 0;
};
using RopeSpecs = std::array<RopeSpec, 2>;  // by LayerType
RopeSpecs rope_specs(const Architecture& arch);

struct RopeBlock {
  int64_t first = 0;  // position of row 0; a multiple of kRopeBlock
  int pairs = 0;
  std::vector<float> values;  // cos[1024][pairs], then sin[1024][pairs]
  TensorDigest digest;        // of the fp32 bits in that order
  const float* cos_row(int64_t p) const { return values.data() + (p - first) * pairs; }
  const float* sin_row(int64_t p) const { return cos_row(p) + kRopeBlock * pairs; }
};

class RopeTable {
 public:
  explicit RopeTable(const Architecture& arch)  // that parse_config accepted
      : RopeTable(rope_specs(arch), arch.max_position) {}
  RopeTable(const RopeSpecs& specs, int64_t max_position);
  const std::vector<float>& inv_freq(LayerType t) const { return of(t).inv_freq; }
  int64_t num_blocks() const { return num_blocks_; }
  // Block of positions [1024·index, 1024·(index+1)), built now if it was not. Any thread may ask; a
  // block stays where it is as long as the table lives.
  const RopeBlock& block(LayerType t, int64_t index) const;
  const RopeBlock& block_of(LayerType t, int64_t position) const {
    return block(t, position / kRopeBlock);
  }

 private:
  struct Slot {
    std::once_flag once;
    std::unique_ptr<RopeBlock> block;
  };
  struct PerType {
    std::vector<float> inv_freq;
    std::unique_ptr<Slot[]> slots;
  };
  const PerType& of(LayerType t) const { return t == LayerType::kSliding ? sliding_ : global_; }
  int64_t num_blocks_ = 0;
  PerType sliding_, global_;
};

}  // namespace sb
