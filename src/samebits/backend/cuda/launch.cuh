// Starting kernels of backend/simt on a CUDA device. Include from .cu files only.
#pragma once

#include <cuda_runtime.h>

#include "samebits/backend/cuda/error.h"
#include "samebits/backend/implementation.h"
#include "samebits/backend/simt/gpu_block.h"

namespace sb::simt {

template <class K, class B>
struct alignas(16) SharedOf {
  typename K::template Shared<B> value;
};

template <class K, Profile P>
__global__ void __launch_bounds__(K::kThreads)
    simt_kernel(const __grid_constant__ typename K::Args args, int64_t items, int32_t* failed) {
  extern __shared__ __align__(16) char shared[];
  GpuBlock<K::kThreads, P> block(shared, failed);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x) {
    K::item(block, args, i);
    block.sync();
  }
}

// The CUDA backend of simt/tables.h: profiles sm90 and ieee on sm_90a.
struct CudaBackend {
  static constexpr const char *kName = "cuda", *kArch = kSm90a;
  static constexpr DeviceId::Kind kDevice = DeviceId::kCuda;
  static constexpr uint8_t kProfiles = profile_bit(Profile::kSm90) | profile_bit(Profile::kIeee);

  template <class K>
  static Status launch(const Exec& exec, const typename K::Args& a, int64_t items) {
    return exec.profile == Profile::kSm90 ? start<K, Profile::kSm90>(exec, a, items)
                                          : start<K, Profile::kIeee>(exec, a, items);
  }

 private:
  template <class K, Profile P>
  static Status start(const Exec& exec, const typename K::Args& a, int64_t items) {
    using Block = GpuBlock<K::kThreads, P>;
    constexpr int kShared = sizeof(typename K::template Shared<Block>);
    if (items <= 0) return {};
    if constexpr (kShared > 48 * 1024) {
      SB_DO(
          cuda_status("allow " + std::to_string(kShared) + " bytes of shared memory",
                      cudaFuncSetAttribute(simt_kernel<K, P>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, kShared)));
    }
    int64_t blocks = items < kMostBlocks ? items : kMostBlocks;
    if (exec.grid_cap > 0 && exec.grid_cap < blocks) blocks = exec.grid_cap;
    simt_kernel<K, P>
        <<<static_cast<unsigned>(blocks), K::kThreads, kShared,
           static_cast<cudaStream_t>(exec.stream)>>>(a, items, cuda_failure_flag(*exec.device));
    return cuda_status("start a kernel", cudaGetLastError());
  }
  static constexpr int64_t kMostBlocks = int64_t{1} << 30;
};

}  // namespace sb::simt
