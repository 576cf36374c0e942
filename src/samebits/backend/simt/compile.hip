// The kernels of this folder for AMD: device code only, without ROCm's headers, so the attributes
// that they would define are defined here. Compiled for gfx942 and scanned by
// tools/compile_portable.py; nothing launches them yet.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

#include "samebits/backend/simt/kernels.h"

namespace sb::simt {

template <class K, Profile P>
__global__ void __attribute__((amdgpu_flat_work_group_size(K::kThreads, K::kThreads))) simt_kernel(
    typename K::Args args, int64_t items, int64_t blocks, int32_t* failed) {
  using Block = GpuBlock<K::kThreads, P>;
  alignas(64) __shared__ char shared[sizeof(typename K::template Shared<Block>)];
  Block block(shared, failed);
  for (int64_t i = block_index(); i < items; i += blocks) {
    K::item(block, args, i);
    block.sync();
  }
}

#define SB_INSTANTIATE(...)                                                                        \
  template __global__ void simt_kernel<__VA_ARGS__, Profile::kGfx942>(typename __VA_ARGS__::Args,  \
                                                                      int64_t, int64_t, int32_t*); \
  template __global__ void simt_kernel<__VA_ARGS__, Profile::kIeee>(typename __VA_ARGS__::Args,    \
                                                                    int64_t, int64_t, int32_t*);
SB_SIMT_KERNELS(SB_INSTANTIATE)

}  // namespace sb::simt

// Without -ffp-contract=off this becomes one fma; the scan requires that it does not.
extern "C" __global__ void contraction_canary(float* p) { p[3] = p[0] * p[1] + p[2]; }
