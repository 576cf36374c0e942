#include "samebits/gate/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "samebits/base/bits.h"
#include "samebits/base/result.h"

namespace sb {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kRatioClamp = 20;  // as the training stacks clamp log-ratios before exp
constexpr double kTisBound = 2;     // the usual truncation of importance weights

struct Stats {
  double min = kNan, max = kNan, mean = kNan, std = kNan;  // std with n − 1
};

// Two passes: the second around the mean, so that small spreads are not lost.
Stats stats_of(const std::vector<double>& v) {
  Stats s;
  if (v.empty()) return s;
  const double n = static_cast<double>(v.size());
  double sum = 0, squares = 0;
  s.min = s.max = v[0];
  for (const double x : v) {
    sum += x;
    s.min = std::min(s.min, x);
    s.max = std::max(s.max, x);
  }
  s.mean = sum / n;
  for (const double x : v) squares += (x - s.mean) * (x - s.mean);
  if (v.size() > 1) s.std = std::sqrt(squares / (n - 1));
  return s;
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const double mx = stats_of(x).mean, my = stats_of(y).mean;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
    xy += (x[i] - mx) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNan;
}

// Nearest rank of sorted values: the smallest value with at least q of all at or below it.
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return kNan;
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

double squared_ratio(double log_ratio) {
  const double r = std::exp(std::clamp(log_ratio, -kRatioClamp, kRatioClamp));
  return r * r;
}

}  // namespace

std::vector<Metric> mismatch_metrics(std::span<const float> train, std::span<const float> rollout,
                                     std::span<const int64_t> starts) {
  SB_ASSERT(train.size() == rollout.size(), "two streams of one length");
  const size_t n = train.size();
  std::vector<double> abs_diff(n), ratio(n), p_train(n), p_rollout(n), probs_diff(n);
  double kl = 0, k3 = 0, chi2 = 0, mult = 0;
  int64_t mismatches = 0, truncated = 0;
  for (size_t i = 0; i < n; ++i) {
    const double t = train[i], r = rollout[i], d = t - r;
    abs_diff[i] = std::fabs(d);
    ratio[i] = std::exp(d);
    p_train[i] = std::exp(t);
    p_rollout[i] = std::exp(r);
    probs_diff[i] = std::fabs(p_train[i] - p_rollout[i]);
    kl -= d;
    k3 += std::expm1(d) - d;
    chi2 += squared_ratio(d);
    mult += std::exp(std::fabs(d));
    mismatches += float_bits(train[i]) != float_bits(rollout[i]);
    truncated += ratio[i] > kTisBound;
  }
  // Per sequence.
  std::vector<double> nll_train, nll_rollout, ppl_train, ppl_rollout, diff, abs_of_diff, ppl_ratio;
  double chi2_seq = 0;
  for (size_t s = 0; s < starts.size(); ++s) {
    const size_t begin = static_cast<size_t>(starts[s]);
    const size_t end = s + 1 < starts.size() ? static_cast<size_t>(starts[s + 1]) : n;
    SB_ASSERT(begin < end && end <= n, "a sequence has no tokens");
    double t = 0, r = 0;
    for (size_t i = begin; i < end; ++i) t += train[i], r += rollout[i];
    chi2_seq += squared_ratio(t - r);
    const double mt = t / static_cast<double>(end - begin),
                 mr = r / static_cast<double>(end - begin);
    nll_train.push_back(-mt);
    nll_rollout.push_back(-mr);
    ppl_train.push_back(std::exp(-mt));
    ppl_rollout.push_back(std::exp(-mr));
    diff.push_back(mr - mt);
    abs_of_diff.push_back(std::fabs(mr - mt));
    ppl_ratio.push_back(std::exp(mr - mt));
  }
  const double count = n ? static_cast<double>(n) : kNan;
  const double sequences = starts.empty() ? kNan : static_cast<double>(starts.size());
  const Stats a = stats_of(abs_diff), p = stats_of(probs_diff), w = stats_of(ratio);
  const Stats dp = stats_of(diff);
  std::sort(abs_diff.begin(), abs_diff.end());
  return {
      {"train/train_rollout_logprob_abs_diff", a.mean},
      {"train/train_rollout_logprob_max_abs_diff", a.max},
      {"train/train_rollout_logprob_mismatch_count", static_cast<double>(mismatches)},
      {"element_count", static_cast<double>(n)},
      {"torch_equal", mismatches == 0 && n > 0 ? 1.0 : 0.0},
      {"logprob_abs_diff/median", quantile(abs_diff, 0.5)},
      {"logprob_abs_diff/p95", quantile(abs_diff, 0.95)},
      {"logprob_abs_diff/p99", quantile(abs_diff, 0.99)},
      {"kl", kl / count},
      {"k3_kl", k3 / count},
      {"chi2_token", chi2 / count - 1},
      {"chi2_seq", chi2_seq / sequences - 1},
      {"training_log_ppl", stats_of(nll_train).mean},
      {"rollout_log_ppl", stats_of(nll_rollout).mean},
      {"training_ppl", stats_of(ppl_train).mean},
      {"rollout_ppl", stats_of(ppl_rollout).mean},
      {"log_ppl_diff", dp.mean},
      {"log_ppl_abs_diff", stats_of(abs_of_diff).mean},
      {"log_ppl_diff_max", dp.max},
      {"log_ppl_diff_min", dp.min},
      {"ppl_ratio", stats_of(ppl_ratio).mean},
      {"training/rollout_probs_diff_max", p.max},
      {"training/rollout_probs_diff_mean", p.mean},
      {"training/rollout_probs_diff_std", p.std},
      {"training/rollout_actor_probs_pearson_corr", pearson(p_train, p_rollout)},
      {"sampling/importance_sampling_ratio/min", w.min},
      {"sampling/importance_sampling_ratio/mean", w.mean},
      {"sampling/importance_sampling_ratio/max", w.max},
      {"sampling/sampling_logp_difference/mean", a.mean},
      {"sampling/sampling_logp_difference/max", a.max},
      {"tis_truncate_fraction", static_cast<double>(truncated) / count},
      {"train/gen_kl_error", kl / count},
      {"token_mult_prob_error", mult / count},
      {"policy/rollout_train_logprobs_abs_diff_mean", a.mean},
      {"policy/rollout_train_logprobs_abs_diff_std", a.std},
      {"policy/rollout_train_logprobs_abs_diff_min", a.min},
      {"policy/rollout_train_logprobs_abs_diff_max", a.max},
  };
}

double metric(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& m : metrics) {
    if (m.name == name) return m.value;
  }
  return kNan;
}

std::string calibration(double mean_abs_diff) {
  // Published magnitudes of mean |Δ logprob| per token, bf16 dense models.
  if (std::isnan(mean_abs_diff)) return "mean |Δ| is unknown";
  if (mean_abs_diff == 0) return "mean |Δ| is 0: the strict target";
  if (mean_abs_diff < 0.006) {
    return "mean |Δ| is below the 0.006–0.016 of healthy bf16 dense runs; the strict target is 0";
  }
  if (mean_abs_diff <= 0.016) {
    return "mean |Δ| is what healthy bf16 dense runs show without strict arithmetic (0.006–0.016); "
           "the strict target is 0";
  }
  if (mean_abs_diff < 0.2) {
    return "mean |Δ| is above the 0.006–0.016 of healthy bf16 dense runs; 0.036 and rising was a "
           "sign of trouble";
  }
  return "mean |Δ| is in the range of broken set-ups (0.2–0.9): semantics, data or weights rather "
         "than rounding";
}

}  // namespace sb
