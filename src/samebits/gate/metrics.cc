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
constexpr double kTisBound = 2;     // the usual truncation of importance weights; below: 1/2
constexpr double kVeto = 1e-4;      // a ratio below it spoils its sequence

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

// The stems of two widespread helpers under the prefixes their logs carry. mismatch_kl is another
// stack's name already, for k3.
std::vector<Metric> with_aliases(std::vector<Metric> metrics) {
  const char* stems[] = {"kl",
                         "k3_kl",
                         "chi2_token",
                         "chi2_seq",
                         "training_ppl",
                         "rollout_ppl",
                         "training_log_ppl",
                         "rollout_log_ppl",
                         "log_ppl_diff",
                         "log_ppl_abs_diff",
                         "log_ppl_diff_max",
                         "log_ppl_diff_min",
                         "ppl_ratio"};
  const char* weights[] = {"tis_weight_before_bound",     "tis_weight_after_bound",
                           "tis_truncate_fraction",       "tis_clip_fraction_low",
                           "tis_clip_fraction_high",      "rs_catastrophic_token_fraction",
                           "rs_catastrophic_seq_fraction"};
  const auto alias = [&](const std::string& prefix, const char* stem) {
    metrics.push_back({prefix + stem, metric(metrics, stem)});
  };
  for (const char* stem : stems) {
    alias("mis_", stem);
    alias("rollout_corr/", stem);
    if (stem != stems[0]) alias("mismatch_", stem);
  }
  for (const char* stem : weights) alias("mis_", stem);
  // A mask drops what a clip cuts, at the same bounds.
  for (const std::string end : {"low", "high"}) {
    const double share = metric(metrics, "tis_clip_fraction_" + end);
    for (const char* name : {"tis_mask_fraction_", "mis_tis_mask_fraction_", "rs_mask_fraction_",
                             "mis_rs_mask_fraction_"}) {
      metrics.push_back({name + end, share});
    }
  }
  // The trainer's stream, whichever of its policies wrote it.
  for (const std::string end : {"abs_diff", "max_abs_diff", "mismatch_count"}) {
    const double value = metric(metrics, "train/train_rollout_logprob_" + end);
    for (const char* policy : {"current", "old"}) {
      metrics.push_back({std::string("train/train_") + policy + "_rollout_logprob_" + end, value});
    }
  }
  return metrics;
}

}  // namespace

std::vector<Metric> mismatch_metrics(std::span<const float> train, std::span<const float> rollout,
                                     std::span<const int64_t> starts) {
  SB_ASSERT(train.size() == rollout.size(), "two streams of one length");
  const size_t n = train.size();
  std::vector<double> abs_diff(n), ratio(n), p_train(n), p_rollout(n), probs_diff(n);
  double kl = 0, k3 = 0, chi2 = 0, mult = 0, bounded = 0, off_one = 0, reverse = 0;
  double sum_train = 0, sum_rollout = 0;
  int64_t mismatches = 0, truncated = 0, low = 0, vetoed = 0;
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
    low += ratio[i] < 1 / kTisBound;
    vetoed += ratio[i] < kVeto;
    bounded += std::min(ratio[i], kTisBound);
    off_one += std::fabs(ratio[i] - 1);
    reverse += p_rollout[i] * (r - t);
    sum_train += t;
    sum_rollout += r;
  }
  // Per sequence.
  std::vector<double> nll_train, nll_rollout, ppl_train, ppl_rollout, diff, abs_of_diff, ppl_ratio;
  std::vector<double> seq_error;
  double chi2_seq = 0;
  int64_t vetoed_sequences = 0;
  for (size_t s = 0; s < starts.size(); ++s) {
    const size_t begin = static_cast<size_t>(starts[s]);
    const size_t end = s + 1 < starts.size() ? static_cast<size_t>(starts[s + 1]) : n;
    SB_ASSERT(begin < end && end <= n, "a sequence has no tokens");
    double t = 0, r = 0, error = 0;
    bool veto = false;
    for (size_t i = begin; i < end; ++i) {
      t += train[i];
      r += rollout[i];
      error += std::exp(abs_diff[i]);
      veto |= ratio[i] < kVeto;
    }
    vetoed_sequences += veto;
    seq_error.push_back(error / static_cast<double>(end - begin));
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
  const Stats dp = stats_of(diff), se = stats_of(seq_error);
  std::sort(abs_diff.begin(), abs_diff.end());
  const auto share = [&](int64_t k) { return static_cast<double>(k) / count; };
  return with_aliases({
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
      {"training/rollout_probs_diff_valid", n ? 1.0 : 0.0},
      {"training/rollout_probs_diff_max", p.max},
      {"training/rollout_probs_diff_mean", p.mean},
      {"training/rollout_probs_diff_std", p.std},
      {"training/rollout_actor_probs_pearson_corr", pearson(p_train, p_rollout)},
      {"sampling/importance_sampling_ratio/min", w.min},
      {"sampling/importance_sampling_ratio/mean", w.mean},
      {"sampling/importance_sampling_ratio/max", w.max},
      {"sampling/sampling_logp_difference/mean", a.mean},
      {"sampling/sampling_logp_difference/max", a.max},
      {"tis_truncate_fraction", share(truncated)},
      {"tis_clip_fraction_high", share(truncated)},
      {"tis_clip_fraction_low", share(low)},
      {"tis_weight_before_bound", w.mean},
      {"tis_weight_after_bound", bounded / count},
      {"rs_catastrophic_token_fraction", share(vetoed)},
      {"rs_catastrophic_seq_fraction", static_cast<double>(vetoed_sequences) / sequences},
      {"train/tis", w.mean},
      {"tis_abs", off_one / count},
      {"tis_clipfrac", share(truncated)},
      {"mismatch_kl", k3 / count},
      {"rollout/log_probs", sum_train / count},
      {"rollout/rollout_log_probs", sum_rollout / count},
      {"train/gen_kl_error", kl / count},
      {"token_mult_prob_error", mult / count},
      {"seq_logprob_error_min", se.min},
      {"seq_logprob_error_mean", se.mean},
      {"seq_logprob_error_max", se.max},
      {"debug/vllm_vs_local_logprob_diff_mean", a.mean},
      {"debug/vllm_vs_local_logprob_diff_max", a.max},
      {"debug/vllm_vs_local_logprob_diff_std", a.std},
      {"debug/vllm_local_reverse_kl", reverse / count},
      {"policy/rollout_train_logprobs_abs_diff_mean", a.mean},
      {"policy/rollout_train_logprobs_abs_diff_std", a.std},
      {"policy/rollout_train_logprobs_abs_diff_min", a.min},
      {"policy/rollout_train_logprobs_abs_diff_max", a.max},
  });
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
