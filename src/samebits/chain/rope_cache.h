// Rotary tables on a device: blocks of 1024 positions copied in when a batch first needs them.
// Faults of the rotary parameters are built into the table; the operator does not see them.
#pragma once

#include <array>

#include "samebits/base/device.h"
#include "samebits/chain/fault.h"
#include "samebits/model/rope_table.h"

namespace sb {

class RopeCache {
 public:
  RopeCache(Device& device, const Architecture& arch, const std::vector<Fault>& faults = {})
      : device_(device), table_(faulty_rope_specs(arch, faults), arch.max_position) {}
  ~RopeCache();
  RopeCache(const RopeCache&) = delete;
  RopeCache& operator=(const RopeCache&) = delete;

  // f32 [blocks, 2, 1024, pairs] that covers positions [0, positions).
  Result<View> get(LayerType type, int64_t positions);

 private:
  Device& device_;
  RopeTable table_;
  std::array<View, 2> views_;
};

}  // namespace sb
