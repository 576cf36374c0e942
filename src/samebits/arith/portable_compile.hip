// The portable header set for AMD: device code only, without ROCm's headers, so the attributes that
// they would define are defined here. Compiled and scanned by tools/compile_portable.py, never run.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

#include "samebits/arith/portable_compile.h"

extern "C" __global__ void portable_functions(const uint32_t* input, uint64_t* out) {
  const uint32_t i = __builtin_amdgcn_workitem_id_x();
  uint64_t sum = 0;
  for (int f = 0; f < sb::arith::kPortableFunctionCount; ++f) {
    sum += sb::arith::portable_digest(f, input[i]);
  }
  out[i] = sum + sb::arith::portable_mixed(input[i]);
}

// Without -ffp-contract=off this becomes one fma; the scan requires that it does not.
extern "C" __global__ void contraction_canary(float* p) { p[3] = p[0] * p[1] + p[2]; }
