// Kernels of this Isa.
#include "samebits/arith/chain_isa.h"

namespace sb::arith {
const ChainKernels* avx512_kernels(Profile) { return nullptr; }
}  // namespace sb::arith
