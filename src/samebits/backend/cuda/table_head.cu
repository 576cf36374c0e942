// CUDA's table of the operators below: the kernels of backend/simt on a GPU.
#include "samebits/backend/cuda/launch.cuh"
#include "samebits/backend/simt/tables.h"

namespace sb {

template <>
std::span<const Implementation<HeadArgs>> cuda_implementations<HeadArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const HeadArgs*>(nullptr));
}
template <>
std::span<const Implementation<HeadFinishArgs>> cuda_implementations<HeadFinishArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const HeadFinishArgs*>(nullptr));
}
template <>
std::span<const Implementation<SampleArgs>> cuda_implementations<SampleArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const SampleArgs*>(nullptr));
}

}  // namespace sb
