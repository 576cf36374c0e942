// Oracle of the cache write: k̂ and v̂ of each live row copied to its slot. Two rows of one launch
// never share a slot (chain/ proves it), so rows may run in any order.
#include <algorithm>

#include "samebits/backend/implementation.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <KvWriteRule C>
Status kv_write(const Exec& exec, const KvWriteArgs& a) {
  const int64_t rows = a.k.shape[0], heads = a.k.shape[1], width = a.k.shape[2];
  const int32_t* slot = a.slot.as<int32_t>();
  return for_rows(exec, rows, static_cast<double>(heads * width), [&](int64_t t) {
    if (slot[t] < 0) return;
    const int64_t to =
        slot[t] / a.kv.page_size * a.kv.page_stride + slot[t] % a.kv.page_size * a.kv.token_stride;
    for (int64_t h = 0; h < heads; ++h) {
      const bf16* k = a.k.as<bf16>() + t * a.k.stride[0] + h * a.k.stride[1];
      const bf16* v = a.v.as<bf16>() + t * a.v.stride[0] + h * a.v.stride[1];
      std::copy(k, k + width, a.kv.k + to + h * a.kv.head_stride);
      std::copy(v, v + width, a.kv.v + to + h * a.kv.head_stride);
    }
  });
}

constexpr Implementation<KvWriteArgs> kTable[] = {
    {"cpu.kv_write.row.v1", ContractId::kKvWrite, kAllProfiles, DeviceId::kCpu, "cpu", "row",
     "none", kv_write<kKvWriteRule>},
};

}  // namespace

template <>
std::span<const Implementation<KvWriteArgs>> cpu_implementations<KvWriteArgs>() {
  return kTable;
}

}  // namespace sb
