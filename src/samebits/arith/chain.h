// Chains of matrix steps on the CPU: the inner loop of every GEMM and of attention. All Isa's give
// the bits of the scalar model in step.h; which one runs is only a matter of speed.
#pragma once

#include <cstdint>

#include "samebits/arith/profile.h"
#include "samebits/base/bf16.h"

namespace sb::arith {

// c[r * ldc + j] becomes the end of a chain of k16 steps that starts at its present value, for
// r < m, j < n. Products are a[r][k] · B[j][k], k ascending in groups of 16; the last group is
// padded with zero products. m, n, k ≥ 0; any alignment of 2 bytes for operands, 4 for c.
struct ChainKernels {
  // b[j] points at row j: k contiguous elements (a weight [out, in], or keys [key][D]).
  void (*b_rows)(const bf16* const* a, int m, const bf16* const* b, int n, int k, float* c,
                 int64_t ldc);
  // b[i] points at k-row i: n contiguous elements (values [key][D]).
  void (*b_cols)(const bf16* const* a, int m, const bf16* const* b, int n, int k, float* c,
                 int64_t ldc);
};

// Kernels of one (profile, isa); nullptr where this CPU or build lacks the Isa.
const ChainKernels* chain_kernels(Profile profile, Isa isa);

// The fastest Isa this CPU has.
Isa best_isa();

}  // namespace sb::arith
