#include "samebits/model/rope_table.h"

#include "samebits/arith/sincos.h"
#include "samebits/base/bits.h"

namespace sb {

RopeSpecs rope_specs(const Architecture& arch) {
  RopeSpecs specs;
  for (LayerType t : {LayerType::kSliding, LayerType::kGlobal}) {
    const AttentionSpec& a = arch.attention(t);
    specs[static_cast<int>(t)] = {a.rope_theta, a.head_dim, a.rotary_pairs};
  }
  return specs;
}

RopeTable::RopeTable(const RopeSpecs& specs, int64_t max_position)
    : num_blocks_(ceil_div(max_position, kRopeBlock)) {
  for (LayerType t : {LayerType::kSliding, LayerType::kGlobal}) {
    const RopeSpec& s = specs[static_cast<int>(t)];
    auto freq = rope_inv_freq(s.theta, s.exponent_dim, s.pairs);
    SB_ASSERT(freq, "a rotary table of an architecture that was not checked");
    PerType& p = t == LayerType::kSliding ? sliding_ : global_;
    p.inv_freq = std::move(*freq);
    p.slots = std::make_unique<Slot[]>(num_blocks_);
  }
}

const RopeBlock& RopeTable::block(LayerType t, int64_t index) const {
  SB_ASSERT(index >= 0 && index < num_blocks_, "rotary block beyond max_position");
  const PerType& type = of(t);
  Slot& slot = type.slots[index];
  std::call_once(slot.once, [&] {
    auto b = std::make_unique<RopeBlock>();
    b->first = index * kRopeBlock;
    b->pairs = static_cast<int>(type.inv_freq.size());
    const size_t half = static_cast<size_t>(kRopeBlock) * b->pairs;
    b->values.resize(2 * half);
    for (int64_t row = 0; row < kRopeBlock; ++row) {
      const float p = static_cast<float>(b->first + row);  // exact: positions are below 2^24
      for (int i = 0; i < b->pairs; ++i) {
        const size_t at = static_cast<size_t>(row) * b->pairs + i;
        arith::sincos(type.inv_freq[i] * p, b->values[half + at], b->values[at]);
      }
    }
    for (size_t i = 0; i < b->values.size(); ++i) b->digest.add(float_bits(b->values[i]), i);
    slot.block = std::move(b);
  });
  return *slot.block;
}

}  // namespace sb
