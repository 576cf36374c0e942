// How far the numbers of a model spread on some row. A model whose attention is one-hot or whose
// logits are flat hides faults: verify prints these figures, and the presets are tuned by them.
#pragma once

#include "samebits/gate/engine.h"

namespace sb {

struct Spread {
  double score_sigma_min = 0, score_sigma_max = 0;  // σ of visible attention scores, over layers
  double max_abs_logit = 0;                         // largest |z| before the softcap
  int64_t logprobs = 0, distinct = 0;
  double lowest_logprob = 0;
  // Scores σ in 1 … 4, some |z| > 20, ≥ 99 % of log-probabilities distinct.
  bool healthy() const;
};

// Scores and logits of `row` alone (training schedule, no faults); log-probabilities from
// `logprobs`.
Result<Spread> measure_spread(Engine& engine, const Sequence& row, const Logprobs& logprobs);

}  // namespace sb
