// AVX2 and FMA kernels: 8 columns a vector. The floor of x86 builds.
#include "samebits/arith/chain_isa.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "samebits/arith/chain_driver.h"
#include "samebits/arith/chain_v256.h"

namespace sb::arith {
const ChainKernels* avx2_kernels(Profile profile) { return simd_kernels<V256>(profile); }
}  // namespace sb::arith
#else
namespace sb::arith {
const ChainKernels* avx2_kernels(Profile) { return nullptr; }
}  // namespace sb::arith
#endif
