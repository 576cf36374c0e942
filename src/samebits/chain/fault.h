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
#include "samebits/model/rope_table.h"

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
  kRopeSwap,
  kPRopeExponent,
  kPRopePairing,
  kVAfterKNorm,
  kNormOnePlusW,
  kSoftcapTwice,
  kSoftcapXTanh,
  kTemperatureTwice,
  kRowShift,
  kGateUpSwapped,
};

enum class ScheduleKind : uint8_t { kTrain, kPrefill, kChunked, kDecode };
constexpr uint8_t schedule_bit(ScheduleKind k) { return uint8_t(1u << static_cast<int>(k)); }
inline constexpr uint8_t kAllSchedules = 0b1111;

// Layers that a fault can act in; kOutside: it acts before, behind or around them.
enum class FaultLayers : uint8_t { kOutside, kAll, kSliding, kGlobal };

struct FaultInfo {
  FaultKind kind;
  const char* name;        // as given to --inject
  const char* summary;     // one line a person reads
  const char* stands_for;  // the bug, as it is met in engines and trainers
  uint8_t schedules;       // schedules it can act in
  Deviation deviation;     // kNone where no operator deviates: the fault is in what operators get
  Tap tap;                 // first boundary that differs, in the first layer it acts in
  FaultLayers layers;
  bool layered;          // acts in all of these layers, or in the one chosen by ":layer=k"
  const char* position;  // where that boundary first differs, in words
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
Boundary fault_boundary(const Fault& fault, const Architecture& arch);

// What the operator at (tap, layer) is told in a run of this schedule.
Deviation deviation_at(const std::vector<Fault>& faults, ScheduleKind schedule, Tap tap, int layer);
// Whether a fault of this kind acts in a run of this schedule (and in this layer).
bool has_fault(const std::vector<Fault>& faults, ScheduleKind schedule, FaultKind kind,
               int layer = -1);
// Parameters of the rotary tables, as faults of RoPE would have them.
RopeSpecs faulty_rope_specs(const Architecture& arch, const std::vector<Fault>& faults);

}  // namespace sb
