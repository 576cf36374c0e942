#include "samebits/chain/fault.h"

#include <algorithm>
#include <charconv>

namespace sb {
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

Boundary fault_boundary(const Fault& fault, const Architecture& arch) {
  const FaultInfo& info = fault_info(fault.kind);
  if (!is_layer_tap(info.tap)) return {info.tap, -1};
  if (fault.layer >= 0) return {info.tap, fault.layer};
  for (int i = 0; i < arch.num_layers(); ++i) {
    const bool sliding = arch.layers[i] == LayerType::kSliding;
    if (info.layers == FaultLayers::kSliding && !sliding) continue;
    if (info.layers == FaultLayers::kGlobal && sliding) continue;
    return {info.tap, i};
  }
  return {info.tap, 0};
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

bool has_fault(const std::vector<Fault>& faults, ScheduleKind schedule, FaultKind kind, int layer) {
  for (const auto& fault : faults) {
    if (fault.kind != kind || !(fault_info(kind).schedules & schedule_bit(schedule))) continue;
    if (!fault_info(kind).layered || layer < 0 || fault.layer < 0 || fault.layer == layer) {
      return true;
    }
  }
  return false;
}

RopeSpecs faulty_rope_specs(const Architecture& arch, const std::vector<Fault>& faults) {
  RopeSpecs specs = rope_specs(arch);
  for (const auto& fault : faults) {
    if (fault.kind != FaultKind::kRopeSwap) continue;
    // Theta and the rotated part of the head go to the other layer type; head sizes stay.
    const RopeSpecs own = specs;
    for (int t = 0; t < 2; ++t) {
      const RopeSpec& other = own[1 - t];
      specs[t].theta = other.theta;
      specs[t].pairs =
          static_cast<int>(int64_t{own[t].exponent_dim} * other.pairs / other.exponent_dim);
    }
  }
  for (const auto& fault : faults) {
    if (fault.kind != FaultKind::kPRopeExponent) continue;
    for (RopeSpec& s : specs) s.exponent_dim = 2 * s.pairs;
  }
  return specs;
}

}  // namespace sb
