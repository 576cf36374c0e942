#include "samebits/chain/fault.h"

#include <algorithm>
#include <charconv>

namespace sb {
namespace {

constexpr uint8_t kTrainOnly = schedule_bit(ScheduleKind::kTrain);
constexpr uint8_t kDecodeOnly = schedule_bit(ScheduleKind::kDecode);
constexpr uint8_t kPagedSteps = kDecodeOnly | schedule_bit(ScheduleKind::kChunked);

}  // namespace

const std::vector<FaultInfo>& all_faults() {
  static const std::vector<FaultInfo> all = {
      {FaultKind::kSoftcapMissing, "softcap-missing", "the final softcap is left out",
       kAllSchedules, Deviation::kSoftcapMissing, Tap::kHeadSoftcap, false},
      {FaultKind::kSoftcapBf16, "softcap-bf16", "the softcap is computed and kept in bf16",
       kAllSchedules, Deviation::kSoftcapBf16, Tap::kHeadSoftcap, false},
      {FaultKind::kWindowMinusOne, "window-minus-1", "sliding layers see one key fewer",
       kAllSchedules, Deviation::kWindowMinusOne, Tap::kAttnCtx, false},
      {FaultKind::kWindowPlusOne, "window-plus-1", "sliding layers see one key more", kAllSchedules,
       Deviation::kWindowPlusOne, Tap::kAttnCtx, false},
      {FaultKind::kLayerScalarDropped, "layer-scalar-dropped", "layer_scalar is read as 1",
       kAllSchedules, Deviation::kScalarDropped, Tap::kLayerOut, true},
      {FaultKind::kEmbedScaleUnrounded, "embed-scale-unrounded",
       "the embedding scale is the fp32 square root, not its bf16 value", kAllSchedules,
       Deviation::kEmbedScaleUnrounded, Tap::kEmbed, false},
      {FaultKind::kGemmLeafOrder, "gemm-leaf-order",
       "the down GEMM runs one chain over K instead of a tree of 8 leaves", kAllSchedules,
       Deviation::kLeafOrder, Tap::kMlpDownAcc, true},
      {FaultKind::kSwappedPage, "swapped-page", "two pages of a block table are exchanged",
       kPagedSteps, Deviation::kNone, Tap::kAttnCtx, false},
      {FaultKind::kStaleSlot, "stale-slot", "one decoded token's key and value are not written",
       kDecodeOnly, Deviation::kNone, Tap::kAttnCtx, false},
      {FaultKind::kKeyLeak, "key-leak", "a packed row reads a key of the row before it", kTrainOnly,
       Deviation::kKeyLeak, Tap::kAttnCtx, false},
      {FaultKind::kDroppedLastBlock, "dropped-last-block",
       "a decode step of one row skips its last block of keys", kDecodeOnly,
       Deviation::kDropLastBlock, Tap::kAttnCtx, false},
  };
  return all;
}

const FaultInfo& fault_info(FaultKind kind) { return all_faults()[static_cast<size_t>(kind)]; }

Result<Fault> parse_fault(const std::string& text, int num_layers) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  for (const auto& info : all_faults()) {
    if (name != info.name) continue;
    Fault fault{info.kind};
    if (colon == std::string::npos) return fault;
    const std::string option = text.substr(colon + 1);
    constexpr std::string_view kLayer = "layer=";
    int layer = -1;
    const char* end = option.data() + option.size();
    const bool parsed = option.starts_with(kLayer) &&
                        std::from_chars(option.data() + kLayer.size(), end, layer).ptr == end;
    if (!info.layered) {
      return refuse(Code::kUsage, "inject " + text, name + " has no layer to choose", name);
    }
    if (!parsed || layer < 0 || layer >= num_layers) {
      return refuse(Code::kUsage, "inject " + text,
                    "the option is not layer=0 … layer=" + std::to_string(num_layers - 1),
                    name + ":layer=0");
    }
    fault.layer = layer;
    return fault;
  }
  std::string known;
  for (const auto& info : all_faults())
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  return refuse(Code::kUsage, "inject " + text, "there is no fault of this name", known);
}

Boundary fault_boundary(const Fault& fault) {
  const FaultInfo& info = fault_info(fault.kind);
  return {info.tap, is_layer_tap(info.tap) ? std::max(0, fault.layer) : -1};
}

Deviation deviation_at(const std::vector<Fault>& faults, ScheduleKind schedule, Tap tap,
                       int layer) {
  for (const auto& fault : faults) {
    const FaultInfo& info = fault_info(fault.kind);
    if (info.tap != tap || !(info.schedules & schedule_bit(schedule))) continue;
    if (info.layered && fault.layer >= 0 && fault.layer != layer) continue;
    if (info.deviation != Deviation::kNone) return info.deviation;
  }
  return Deviation::kNone;
}

bool has_fault(const std::vector<Fault>& faults, ScheduleKind schedule, FaultKind kind) {
  for (const auto& fault : faults) {
    if (fault.kind == kind && (fault_info(kind).schedules & schedule_bit(schedule))) return true;
  }
  return false;
}

}  // namespace sb
