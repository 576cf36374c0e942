// Tables of implementations. An implementation claims one contract for a set of profiles on one
// device kind and architecture; ops/ selects by exact match and never takes a second choice.
// A backend that is not built contributes a reason (*_none.cc).
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend/exec.h"
#include "samebits/backend/op_args.h"
#include "samebits/contract/contract.h"

namespace sb {

constexpr uint8_t profile_bit(Profile p) { return uint8_t(1u << static_cast<int>(p)); }
inline constexpr uint8_t kAllProfiles = 0b111;

template <class Args>
struct Implementation {
  const char* id;  // "cpu.rmsnorm.row.v1"
  ContractId contract;
  uint8_t profiles;  // bits of profile_bit
  DeviceId::Kind device;
  const char* arch;      // "cpu", "sm_90a", "gfx942": what Exec::arch must be
  const char* schedule;  // how work is cut; never changes bits
  const char* split;     // split policy of the reduction
  Status (*run)(const Exec&, const Args&);
};

// Defined once per operator in backend/cpu.
template <class Args>
std::span<const Implementation<Args>> cpu_implementations();

// Why a device kind has no implementations at all in this build; nullptr if it has.
const char* cuda_absence();
const char* hip_absence();

}  // namespace sb
