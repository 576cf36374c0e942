// Oracle of sampling: Gumbel argmax over c/T + g, or greedy; the lowest id wins ties. The noise of
// an id depends only on (seed, row id, position, id), never on the batch, so a row draws the same
// tokens alone and in company.
#include <limits>

#include "samebits/arith/log.h"
#include "samebits/backend/implementation.h"
#include "samebits/base/rng.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

template <SampleRule C>
float gumbel(uint32_t word) {
  static_assert(C.uniform_bits == 23);
  // (n + ½)·2^−23 with n of 23 bits: exact in fp32, and never 0 or 1.
  const float u = (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
  return -arith::log(-arith::log(u));
}

template <SampleRule C>
Status sample(const Exec& exec, const SampleArgs& a) {
  const int64_t rows = a.capped.shape[0], cols = a.capped.shape[1];
  const uint8_t* suppress = a.suppress ? a.suppress.as<uint8_t>() : nullptr;
  return for_rows(exec, rows, 20.0 * static_cast<double>(cols), [&](int64_t r) {
    const float* c = a.capped.as<float>() + r * a.capped.stride[0];
    const uint64_t hash = a.row_hash.as<uint64_t>()[r];
    const uint32_t position = static_cast<uint32_t>(a.position.as<int32_t>()[r]);
    float best = -std::numeric_limits<float>::infinity();
    int64_t best_id = -1;
    Philox4 words{};
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t id = a.vocab_begin + j;
      if (!a.greedy && (j == 0 || id % 4 == 0)) {
        words =
            philox4x32_10(Philox4{{static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32),
                                   position, static_cast<uint32_t>(id / 4)}},
                          a.seed);
      }
      if (suppress && suppress[id]) continue;
      // Greedy compares c itself: a division can make two different values equal.
      const float value = a.greedy ? c[j] : c[j] / a.temperature + gumbel<C>(words.v[id % 4]);
      if (best_id < 0 || value > best) {
        best = value;
        best_id = id;
      }
    }
    a.best.as<float>()[r] = best;
    a.token.as<int32_t>()[r] = static_cast<int32_t>(best_id);
    a.c_token.as<float>()[r] = best_id < 0 ? best : c[best_id - a.vocab_begin] / a.temperature;
  });
}

constexpr Implementation<SampleArgs> kTable[] = {
    {"cpu.sample.row.v1", ContractId::kSample, kAllProfiles, DeviceId::kCpu, "cpu", "row", "none",
     sample<kSampleRule>},
};

}  // namespace

template <>
std::span<const Implementation<SampleArgs>> cpu_implementations<SampleArgs>() {
  return kTable;
}

}  // namespace sb
