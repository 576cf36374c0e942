// Picks the kernels of a chain by what the CPU reports. The choice changes speed, never bits.
#include "samebits/arith/chain.h"

#include "samebits/arith/chain_isa.h"

namespace sb::arith {
namespace {

#if defined(__x86_64__)
bool cpu_has(Isa isa) {
  switch (isa) {
    case Isa::kPlain: return true;
    case Isa::kAvx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  }
  return false;
}
#else
bool cpu_has(Isa isa) { return isa == Isa::kPlain; }
#endif

}  // namespace

const ChainKernels* chain_kernels(Profile profile, Isa isa) {
  if (!cpu_has(isa)) return nullptr;
  switch (isa) {
    case Isa::kPlain: return plain_kernels(profile);
    case Isa::kAvx2: return avx2_kernels(profile);
    case Isa::kAvx512: return avx512_kernels(profile);
  }
  return nullptr;
}

Isa best_isa() {
  static const Isa best = [] {
    if (chain_kernels(Profile::kSm90, Isa::kAvx512) != nullptr) return Isa::kAvx512;
    if (chain_kernels(Profile::kSm90, Isa::kAvx2) != nullptr) return Isa::kAvx2;
    return Isa::kPlain;
  }();
  return best;
}

}  // namespace sb::arith
