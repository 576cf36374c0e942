// Tables of implementations. An implementation claims one contract for a set of profiles on one
// device kind and architecture; ops/ selects by exact match and never takes a second choice.
// A backend that is not built contributes empty tables and a reason (*_none.cc).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  const char* arch;      // what Exec::arch must be: one of the names in exec.h
  const char* schedule;  // how work is cut; never changes bits
  const char* split;     // split policy of the reduction
  Status (*run)(const Exec&, const Args&);
};

// Every operator, by its arguments.
// clang-format off
#define SB_OPERATORS(X) \
  X(EmbedArgs) \
  X(RmsNormArgs) \
  X(GemmArgs) \
  X(GemmPartialArgs) \
  X(GemmFinishArgs) \
  X(RopeArgs) \
  X(KvWriteArgs) \
  X(AttentionArgs) \
  X(ResidualArgs) \
  X(LayerScaleArgs) \
  X(GeluMulArgs) \
  X(HeadArgs) \
  X(HeadFinishArgs) \
  X(SampleArgs)
// clang-format on

// Defined once per operator by each backend: the oracle, the CPU emulation of the GPU kernels,
// CUDA.
template <class Args>
std::span<const Implementation<Args>> cpu_implementations();
template <class Args>
std::span<const Implementation<Args>> emulated_implementations();
template <class Args>
std::span<const Implementation<Args>> cuda_implementations();

// All of them.
template <class Args>
const std::vector<Implementation<Args>>& implementations() {
  static const auto all = [] {
    std::vector<Implementation<Args>> v;
    for (const auto& table : {cpu_implementations<Args>(), emulated_implementations<Args>(),
                              cuda_implementations<Args>()}) {
      v.insert(v.end(), table.begin(), table.end());
    }
    return v;
  }();
  return all;
}

// Why a device kind has no implementations at all in this build; nullptr if it has.
const char* cuda_absence();
const char* hip_absence();

}  // namespace sb
