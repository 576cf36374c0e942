// What each chain_*.cc gives to the dispatch in chain.cc. A file whose instructions this build does
// not know returns nullptr; whether the CPU has them is asked in chain.cc, before any call.
#pragma once

#include "samebits/arith/chain.h"

namespace sb::arith {

const ChainKernels* plain_kernels(Profile profile);
const ChainKernels* avx2_kernels(Profile profile);
const ChainKernels* avx512_kernels(Profile profile);

}  // namespace sb::arith
