// CUDA's table of the operators below: the kernels of backend/simt on a GPU.
#include "samebits/backend/cuda/launch.cuh"
#include "samebits/backend/simt/tables.h"

namespace sb {

template <>
std::span<const Implementation<GemmArgs>> cuda_implementations<GemmArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const GemmArgs*>(nullptr));
}
template <>
std::span<const Implementation<GemmPartialArgs>> cuda_implementations<GemmPartialArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const GemmPartialArgs*>(nullptr));
}
template <>
std::span<const Implementation<GemmFinishArgs>> cuda_implementations<GemmFinishArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const GemmFinishArgs*>(nullptr));
}

}  // namespace sb
