// Oracle of RMSNorm: 256 slots filled by fma in ascending order, added in adjacent pairs, so the
// sum of squares has one shape for every width and machine. Weight as w (not 1 + w), one rounding.
#include <algorithm>

#include "samebits/arith/fp.h"
#include "samebits/arith/tree.h"
#include "samebits/backend/implementation.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <RmsNormRule C>
float inverse_rms(const bf16* x, int64_t width, float eps) {
  static_assert(C.tree == Tree::kAdjacent);
  float slot[C.slots] = {};
  int64_t e = 0;
  for (; e + C.slots <= width; e += C.slots) {
    for (int i = 0; i < C.slots; ++i) {
      const float v = widen(x[e + i]);
      slot[i] = arith::fma(v, v, slot[i]);
    }
  }
  for (int i = 0; e + i < width; ++i) {
    const float v = widen(x[e + i]);
    slot[i] = arith::fma(v, v, slot[i]);
  }
  const float mean = arith::tree_adjacent<C.slots>(slot) / static_cast<float>(width);
  return 1.0f / arith::sqrt(mean + eps);
}

template <RmsNormRule C>
Status rmsnorm(const Exec& exec, const RmsNormArgs& a) {
  const int64_t rows = a.x.shape[0], heads = a.x.shape[1], width = a.x.shape[2];
  const bf16* x = a.x.as<bf16>();
  const bf16* w = a.w ? a.w.as<bf16>() : nullptr;
  bf16* out = a.out.as<bf16>();
  const bool one_plus_w = a.deviation == Deviation::kNormOnePlusW;
  return for_rows(exec, rows, static_cast<double>(heads * width), [&](int64_t t) {
    for (int64_t h = 0; h < heads; ++h) {
      const bf16* row = x + t * a.x.stride[0] + h * a.x.stride[1];
      bf16* y = out + t * a.out.stride[0] + h * a.out.stride[1];
      const float r = inverse_rms<C>(row, width, a.eps);
      if (w) {
        for (int64_t i = 0; i < width; ++i) {
          const float gain = one_plus_w ? 1.0f + widen(w[i]) : widen(w[i]);
          y[i] = round_bf16((widen(row[i]) * r) * gain);
        }
      } else {
        for (int64_t i = 0; i < width; ++i) y[i] = round_bf16(widen(row[i]) * r);
      }
    }
  });
}

constexpr Implementation<RmsNormArgs> kTable[] = {
    {"cpu.rmsnorm.row.v1", ContractId::kRmsNorm, kAllProfiles, DeviceId::kCpu, "cpu", "row", "none",
     rmsnorm<kRmsNormRule>},
};

}  // namespace

template <>
std::span<const Implementation<RmsNormArgs>> cpu_implementations<RmsNormArgs>() {
  return kTable;
}

}  // namespace sb
