// What each chain_*.cc gives to the dispatch in chain.cc. A file whose instructions this build does
// not know returns nullptr; whether the CPU has them is asked in chain.cc, before any call.
#pragma once

#include "samebits/arith/chain.h"

namespace sb::arith {

const ChainKernels* plain_kernels(Profile profile);
const ChainKernels* avx2_kernels(Profile profile);
const ChainKernels* avx512_kernels(Profile profile);

// The scalar models on bf16 values already widened to fp32: 16 products, and one group of 8.
float sm90_step_widened(const float* a, const float* b, float c);
float gfx942_group_widened(const float* a, const float* b, float c);

// This thread's buffer of at least `count` steps, 64-byte aligned; valid until the next call.
struct RowStep;
RowStep* row_step_scratch(int64_t count);

}  // namespace sb::arith
