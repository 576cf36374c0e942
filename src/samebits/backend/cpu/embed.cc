// Oracle of the token embedding: x = R(E[id] · s), s = R(√hidden) whatever the load dtype.
#include <cmath>

#include "samebits/backend/implementation.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <EmbedRule C>
float embed_scale(int64_t hidden, Deviation deviation) {
  const float root = std::sqrt(static_cast<float>(hidden));  // IEEE
  const bool round = C.round_scale && deviation != Deviation::kEmbedScaleUnrounded;
  return round ? rounded(root) : root;
}

template <EmbedRule C>
Status embed(const Exec& exec, const EmbedArgs& a) {
  const int64_t rows = a.out.shape[0], hidden = a.out.shape[1];
  const float scale = embed_scale<C>(hidden, a.deviation);
  const bf16* table = a.table.as<bf16>();
  const int32_t* token = a.token.as<int32_t>();
  const int32_t* seq = a.seq.as<int32_t>();
  bf16* out = a.out.as<bf16>();
  return for_rows(exec, rows, static_cast<double>(hidden), [&](int64_t t) {
    if (seq[t] < 0) return;
    const bf16* e = table + token[t] * a.table.stride[0];
    bf16* x = out + t * a.out.stride[0];
    for (int64_t i = 0; i < hidden; ++i) x[i] = round_bf16(widen(e[i]) * scale);
  });
}

constexpr Implementation<EmbedArgs> kTable[] = {
    {"cpu.embed.row.v1", ContractId::kEmbed, kAllProfiles, DeviceId::kCpu, "cpu", "row", "none",
     embed<kEmbedRule>},
};

}  // namespace

template <>
std::span<const Implementation<EmbedArgs>> cpu_implementations<EmbedArgs>() {
  return kTable;
}

}  // namespace sb
