// AVX-512 kernels (F, BW, VL, DQ): 16 columns a vector.
#include "samebits/arith/chain_isa.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#include "samebits/arith/chain_driver.h"
#include "samebits/arith/chain_v512.h"

namespace sb::arith {
const ChainKernels* avx512_kernels(Profile profile) { return simd_kernels<V512>(profile); }
}  // namespace sb::arith
#else
namespace sb::arith {
const ChainKernels* avx512_kernels(Profile) { return nullptr; }
}  // namespace sb::arith
#endif
