// Kernels of this Isa.
#include "samebits/arith/chain_isa.h"

namespace sb::arith {
const ChainKernels* avx2_kernels(Profile) { return nullptr; }
}  // namespace sb::arith
