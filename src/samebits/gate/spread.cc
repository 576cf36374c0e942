#include "samebits/gate/spread.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "samebits/base/bits.h"

namespace sb {
namespace {

// Copies q̂, k̂ and the logits of one packed row to the host.
class Probe : public Taps {
 public:
  bool wants(Boundary b) const override {
    return b.tap == Tap::kAttnQRope || b.tap == Tap::kAttnKRope || b.tap == Tap::kHeadLogit;
  }
  Status emit(Ctx& ctx, Boundary b, const View& value, int64_t, int64_t, int64_t) override {
    std::vector<unsigned char> bytes(static_cast<size_t>(value.bytes()));
    ctx.exec.device->copy_out(bytes.data(), value.ptr, bytes.size());
    if (b.tap == Tap::kHeadLogit) {
      std::vector<float> z(bytes.size() / sizeof(float));
      std::memcpy(z.data(), bytes.data(), bytes.size());
      for (float v : z) max_abs_logit = std::max(max_abs_logit, std::abs(double{v}));
    } else {
      auto& to = (b.tap == Tap::kAttnQRope ? q : k)[b.layer];
      to.resize(bytes.size() / sizeof(bf16));
      std::memcpy(static_cast<void*>(to.data()), bytes.data(), bytes.size());
    }
    return {};
  }
  std::map<int, std::vector<bf16>> q, k;
  double max_abs_logit = 0;
};

// σ of q·k over the keys each query sees, in double: a figure to look at, not a contract.
double score_sigma(const Architecture& arch, int layer, const std::vector<bf16>& q,
                   const std::vector<bf16>& k, int64_t rows) {
  const AttentionSpec& spec = arch.attention(layer);
  const bool sliding = arch.layers[layer] == LayerType::kSliding;
  const int64_t d = spec.head_dim, heads = arch.num_heads, group = heads / spec.num_kv_heads;
  double sum = 0, squares = 0, n = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t first = sliding ? std::max<int64_t>(0, t - arch.window + 1) : 0;
    for (int64_t h = 0; h < heads; ++h) {
      const bf16* a = q.data() + (t * heads + h) * d;
      for (int64_t j = first; j <= t; ++j) {
        const bf16* b = k.data() + (j * spec.num_kv_heads + h / group) * d;
        double s = 0;
        for (int64_t i = 0; i < d; ++i) s += double{widen(a[i])} * double{widen(b[i])};
        sum += s;
        squares += s * s;
        n += 1;
      }
    }
  }
  return std::sqrt(std::max(0.0, squares / n - sum / n * sum / n));
}

}  // namespace

bool Spread::healthy() const {
  return score_sigma_min >= 1 && score_sigma_max <= 4 && max_abs_logit > 20 && logprobs > 0 &&
         static_cast<double>(distinct) >= 0.99 * static_cast<double>(logprobs);
}

Result<Spread> measure_spread(Engine& engine, const Sequence& row, const Logprobs& logprobs) {
  Spread s;
  std::set<uint32_t> distinct;
  for (const auto& values : logprobs) {
    for (float v : values) {
      ++s.logprobs;
      distinct.insert(float_bits(v));
      s.lowest_logprob = std::min(s.lowest_logprob, double{v});
    }
  }
  s.distinct = static_cast<int64_t>(distinct.size());

  Probe probe;
  RunOptions run = engine.run_options({});
  run.session.faults.clear();
  run.taps = &probe;
  Parallel alone;
  SB_TRY(result, score_rows(*engine.model, *engine.device, *engine.pool, alone, {row}, run));
  SB_ASSERT(result.steps == 1, "a packed row is one step");
  s.max_abs_logit = probe.max_abs_logit;
  s.score_sigma_min = INFINITY;
  for (const auto& [layer, q] : probe.q) {
    const double sigma = score_sigma(engine.model->arch, layer, q, probe.k.at(layer), row.size());
    s.score_sigma_min = std::min(s.score_sigma_min, sigma);
    s.score_sigma_max = std::max(s.score_sigma_max, sigma);
  }
  return s;
}

}  // namespace sb
