// Oracle of rotary embedding: rotate-half over the whole head, pairs (i, i + D/2). Pairs beyond the
// table's (p-RoPE) are copied bit for bit, so −0 stays −0. The planted fault kRopePairing pairs
// (i, i + pairs) inside the rotated prefix.
#include <algorithm>

#include "samebits/backend/implementation.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <RopeRule C>
Status rope(const Exec& exec, const RopeArgs& a) {
  const int64_t rows = a.x.shape[0], heads = a.x.shape[1], width = a.x.shape[2];
  const int64_t block = a.table.shape[2], pairs = a.table.shape[3];
  const int64_t half = a.deviation == Deviation::kRopePairing ? pairs : width / 2;
  const int32_t* pos = a.pos.as<int32_t>();
  const int32_t* seq = a.seq.as<int32_t>();
  return for_rows(exec, rows, static_cast<double>(heads * width), [&](int64_t t) {
    if (seq[t] < 0) return;
    const float* cos = a.table.as<float>() + pos[t] / block * a.table.stride[0] +
                       pos[t] % block * a.table.stride[2];
    const float* sin = cos + a.table.stride[1];
    for (int64_t h = 0; h < heads; ++h) {
      const bf16* x = a.x.as<bf16>() + t * a.x.stride[0] + h * a.x.stride[1];
      bf16* out = a.out.as<bf16>() + t * a.out.stride[0] + h * a.out.stride[1];
      for (int64_t i = 0; i < pairs; ++i) {
        const float p = widen(x[i]), q = widen(x[i + half]);
        out[i] = round_bf16(p * cos[i] - q * sin[i]);
        out[i + half] = round_bf16(q * cos[i] + p * sin[i]);
      }
      std::copy(x + pairs, x + half, out + pairs);
      std::copy(x + half + pairs, x + width, out + half + pairs);
    }
  });
}

constexpr Implementation<RopeArgs> kTable[] = {
    {"cpu.rope.row.v1", ContractId::kRope, kAllProfiles, DeviceId::kCpu, "cpu", "row", "none",
     rope<kRopeRule>},
};

}  // namespace

template <>
std::span<const Implementation<RopeArgs>> cpu_implementations<RopeArgs>() {
  return kTable;
}

}  // namespace sb
