// CUDA's table of the operators below: the kernels of backend/simt on a GPU.
#include "samebits/backend/cuda/launch.cuh"
#include "samebits/backend/simt/tables.h"

namespace sb {

template <>
std::span<const Implementation<EmbedArgs>> cuda_implementations<EmbedArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const EmbedArgs*>(nullptr));
}
template <>
std::span<const Implementation<RmsNormArgs>> cuda_implementations<RmsNormArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const RmsNormArgs*>(nullptr));
}
template <>
std::span<const Implementation<RopeArgs>> cuda_implementations<RopeArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const RopeArgs*>(nullptr));
}
template <>
std::span<const Implementation<KvWriteArgs>> cuda_implementations<KvWriteArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const KvWriteArgs*>(nullptr));
}
template <>
std::span<const Implementation<ResidualArgs>> cuda_implementations<ResidualArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const ResidualArgs*>(nullptr));
}
template <>
std::span<const Implementation<LayerScaleArgs>> cuda_implementations<LayerScaleArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const LayerScaleArgs*>(nullptr));
}
template <>
std::span<const Implementation<GeluMulArgs>> cuda_implementations<GeluMulArgs>() {
  return simt::table<simt::CudaBackend>(static_cast<const GeluMulArgs*>(nullptr));
}

std::span<const Moves> cuda_moves() {
  static constexpr Moves kMoves[] = {simt::moves<simt::CudaBackend>()};
  return kMoves;
}

}  // namespace sb
