// CUDA's table of the operators below: the kernels of backend/simt on a GPU.
#include "samebits/backend/cuda/launch.cuh"
#include "samebits/backend/simt/tables.h"

namespace sb {

template <>
std::span<const Implementation<AttentionArgs>> cuda_implementations<AttentionArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const AttentionArgs*>(nullptr));
}

}  // namespace sb
