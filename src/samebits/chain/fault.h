// Planted faults: the negative control. A run with a fault claims the same contracts and writes
// files that look like any other; only its bits differ. Each fault has one first boundary and
// position at which `compare` must find it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/backend/op_args.h"
#include "samebits/base/result.h"
#include "samebits/contract/boundary.h"

namespace sb {

enum class FaultKind : uint8_t {
  kSoftcapMissing,
  kSoftcapBf16,
  kWindowMinusOne,
  kWindowPlusOne,
  kLayerScalarDropped,
  kEmbedScaleUnrounded,
  kGemmLeafOrder,
  kSwappedPage,
  kStaleSlot,
  kKeyLeak,
  kDroppedLastBlock,
};

enum class ScheduleKind : uint8_t { kTrain, kPrefill, kChunked, kDecode };
constexpr uint8_t schedule_bit(ScheduleKind k) { return uint8_t(1u << static_cast<int>(k)); }
inline constexpr uint8_t kAllSchedules = 0b1111;

struct FaultInfo {
  FaultKind kind;
  const char* name;     // as given to --inject
  const char* summary;  // one line a person reads
  uint8_t schedules;    // schedules it can act in
  Deviation deviation;  // kNone where the fault is in the cache, not in an operator
  Tap tap;              // first boundary that differs
  bool layered;         // acts in every layer, or in the one chosen by ":layer=k"
};
const std::vector<FaultInfo>& all_faults();
const FaultInfo& fault_info(FaultKind kind);

struct Fault {
  FaultKind kind{};
  int layer = -1;  // −1: every layer
};

// "window-minus-1" or "gemm-leaf-order:layer=3"; refuses unknown names (listing the known ones),
// layers outside 0 … num_layers−1 and layers given to faults that have none.
Result<Fault> parse_fault(const std::string& text, int num_layers);

// The first boundary at which a fault shows, e.g. layers.3.mlp.down.acc.
Boundary fault_boundary(const Fault& fault);

// What the operator at (tap, layer) is told in a run of this schedule.
Deviation deviation_at(const std::vector<Fault>& faults, ScheduleKind schedule, Tap tap, int layer);
bool has_fault(const std::vector<Fault>& faults, ScheduleKind schedule, FaultKind kind);

}  // namespace sb
