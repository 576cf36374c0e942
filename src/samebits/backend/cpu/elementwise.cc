// Oracles of the element-wise operators: residual add, layer_scalar, gelu(gate) · up. One fp32
// operation and one rounding at each cast point; no fp32 residual stream.
#include "samebits/arith/gelu.h"
#include "samebits/backend/implementation.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <ResidualRule C>
Status residual(const Exec& exec, const ResidualArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  return for_rows(exec, rows, static_cast<double>(width), [&](int64_t t) {
    const bf16* x = a.x.as<bf16>() + t * a.x.stride[0];
    const bf16* p = a.p.as<bf16>() + t * a.p.stride[0];
    bf16* out = a.out.as<bf16>() + t * a.out.stride[0];
    for (int64_t i = 0; i < width; ++i) out[i] = round_bf16(widen(x[i]) + widen(p[i]));
  });
}

template <LayerScaleRule C>
Status layer_scale(const Exec& exec, const LayerScaleArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  const float s = a.deviation == Deviation::kScalarDropped ? 1.0f : widen(a.scalar.as<bf16>()[0]);
  return for_rows(exec, rows, static_cast<double>(width), [&](int64_t t) {
    const bf16* x = a.x.as<bf16>() + t * a.x.stride[0];
    bf16* out = a.out.as<bf16>() + t * a.out.stride[0];
    for (int64_t i = 0; i < width; ++i) out[i] = round_bf16(widen(x[i]) * s);
  });
}

template <GeluMulRule C>
Status gelu_mul(const Exec& exec, const GeluMulArgs& a) {
  const int64_t rows = a.out.shape[0], width = a.out.shape[1];
  return for_rows(exec, rows, 4.0 * static_cast<double>(width), [&](int64_t t) {
    const bf16* gate = a.gate.as<bf16>() + t * a.gate.stride[0];
    const bf16* up = a.up.as<bf16>() + t * a.up.stride[0];
    bf16* out = a.out.as<bf16>() + t * a.out.stride[0];
    bf16* gelu = a.gelu ? a.gelu.as<bf16>() + t * a.gelu.stride[0] : nullptr;
    for (int64_t i = 0; i < width; ++i) {
      const bf16 g = round_bf16(arith::gelu_tanh(widen(gate[i])));
      out[i] = round_bf16(widen(g) * widen(up[i]));
      if (gelu) gelu[i] = g;
    }
  });
}

constexpr Implementation<ResidualArgs> kResidual[] = {
    {"cpu.residual.row.v1", ContractId::kResidual, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "none", residual<kResidualRule>},
};
constexpr Implementation<LayerScaleArgs> kScale[] = {
    {"cpu.layer_scale.row.v1", ContractId::kLayerScale, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "none", layer_scale<kLayerScaleRule>},
};
constexpr Implementation<GeluMulArgs> kGeluMul[] = {
    {"cpu.gelu_mul.row.v1", ContractId::kGeluMul, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "none", gelu_mul<kGeluMulRule>},
};

}  // namespace

template <>
std::span<const Implementation<ResidualArgs>> cpu_implementations<ResidualArgs>() {
  return kResidual;
}
template <>
std::span<const Implementation<LayerScaleArgs>> cpu_implementations<LayerScaleArgs>() {
  return kScale;
}
template <>
std::span<const Implementation<GeluMulArgs>> cpu_implementations<GeluMulArgs>() {
  return kGeluMul;
}

}  // namespace sb
