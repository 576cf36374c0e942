#include "samebits/gate/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sb {
namespace {

using testing::HasSubstr;

// Metrics are descriptions, so these checks allow double rounding; verdicts never use them.
constexpr double kTiny = 1e-12;

TEST(Metrics, EqualStreamsGiveExactZeros) {
  const std::vector<float> x = {-1.5f, -0.25f, -3.0f};
  const std::vector<int64_t> starts = {0, 2};
  const auto m = mismatch_metrics(x, x, starts);
  for (const char* name :
       {"train/train_rollout_logprob_abs_diff", "train/train_rollout_logprob_max_abs_diff",
        "train/train_rollout_logprob_mismatch_count", "kl", "k3_kl", "chi2_token", "chi2_seq",
        "log_ppl_diff", "log_ppl_abs_diff", "training/rollout_probs_diff_max",
        "tis_truncate_fraction", "policy/rollout_train_logprobs_abs_diff_std"}) {
    EXPECT_EQ(metric(m, name), 0.0) << name;
  }
  EXPECT_EQ(metric(m, "torch_equal"), 1.0);
  EXPECT_EQ(metric(m, "element_count"), 3.0);
  EXPECT_EQ(metric(m, "ppl_ratio"), 1.0);
  EXPECT_EQ(metric(m, "sampling/importance_sampling_ratio/mean"), 1.0);
  EXPECT_EQ(metric(m, "token_mult_prob_error"), 1.0);
  // tolerance: exact value, metrics are rounded doubles
  EXPECT_NEAR(metric(m, "training/rollout_actor_probs_pearson_corr"), 1.0, kTiny);
}

TEST(Metrics, FollowTheirFormulas) {
  const std::vector<float> train = {-1.0f, -2.0f, -0.5f}, rollout = {-1.5f, -2.0f, -0.25f};
  const std::vector<int64_t> starts = {0, 2};
  const auto m = mismatch_metrics(train, rollout, starts);
  const double d[] = {0.5, 0.0, -0.25};
  double k3 = 0, chi2 = 0;
  for (const double x : d) k3 += std::exp(x) - x - 1, chi2 += std::exp(2 * x);
  EXPECT_EQ(metric(m, "train/train_rollout_logprob_max_abs_diff"), 0.5);
  EXPECT_EQ(metric(m, "train/train_rollout_logprob_mismatch_count"), 2.0);
  EXPECT_EQ(metric(m, "torch_equal"), 0.0);
  EXPECT_EQ(metric(m, "logprob_abs_diff/median"), 0.25);
  EXPECT_EQ(metric(m, "logprob_abs_diff/p99"), 0.5);
  // tolerance: the formulas, computed by another order of double sums
  EXPECT_NEAR(metric(m, "train/train_rollout_logprob_abs_diff"), 0.25, kTiny);
  EXPECT_NEAR(metric(m, "kl"), -0.25 / 3, kTiny);
  EXPECT_NEAR(metric(m, "k3_kl"), k3 / 3, kTiny);
  EXPECT_NEAR(metric(m, "chi2_token"), chi2 / 3 - 1, kTiny);
  EXPECT_NEAR(metric(m, "chi2_seq"), (std::exp(1.0) + std::exp(-0.5)) / 2 - 1, kTiny);
  EXPECT_NEAR(metric(m, "training_log_ppl"), (1.5 + 0.5) / 2, kTiny);
  EXPECT_NEAR(metric(m, "rollout_log_ppl"), (1.75 + 0.25) / 2, kTiny);
  EXPECT_NEAR(metric(m, "log_ppl_diff"), (-0.25 + 0.25) / 2, kTiny);
  EXPECT_NEAR(metric(m, "log_ppl_abs_diff"), 0.25, kTiny);
  EXPECT_NEAR(metric(m, "ppl_ratio"), (std::exp(-0.25) + std::exp(0.25)) / 2, kTiny);
  EXPECT_NEAR(metric(m, "sampling/importance_sampling_ratio/max"), std::exp(0.5), kTiny);
  EXPECT_NEAR(metric(m, "training/rollout_probs_diff_max"), std::exp(-0.25) - std::exp(-0.5),
              kTiny);
}

TEST(Metrics, WeightsAndErrorsOfTheStacks) {
  const std::vector<float> train = {-1.0f, -2.0f, -0.5f, -12.0f},
                           rollout = {-2.0f, -2.0f, -1.25f, -1.0f};
  const std::vector<int64_t> starts = {0, 2};
  const auto m = mismatch_metrics(train, rollout, starts);
  const double r[] = {std::exp(1.0), 1.0, std::exp(0.75), std::exp(-11.0)};
  EXPECT_EQ(metric(m, "tis_clip_fraction_high"), 0.5);
  EXPECT_EQ(metric(m, "tis_clip_fraction_low"), 0.25);
  EXPECT_EQ(metric(m, "rs_catastrophic_token_fraction"), 0.25);
  EXPECT_EQ(metric(m, "rs_catastrophic_seq_fraction"), 0.5);
  EXPECT_EQ(metric(m, "rollout/log_probs"), -15.5 / 4);
  EXPECT_EQ(metric(m, "rollout/rollout_log_probs"), -6.25 / 4);
  EXPECT_EQ(metric(m, "training/rollout_probs_diff_valid"), 1.0);
  // tolerance: the formulas, computed by another order of double sums
  EXPECT_NEAR(metric(m, "tis_weight_before_bound"), (r[0] + r[1] + r[2] + r[3]) / 4, kTiny);
  EXPECT_NEAR(metric(m, "tis_weight_after_bound"), (2 + 1 + 2 + r[3]) / 4, kTiny);
  EXPECT_NEAR(metric(m, "tis_abs"), (r[0] - 1 + r[2] - 1 + 1 - r[3]) / 4, kTiny);
  EXPECT_NEAR(metric(m, "seq_logprob_error_min"), (std::exp(1.0) + 1) / 2, kTiny);
  EXPECT_NEAR(metric(m, "seq_logprob_error_max") / (std::exp(11.0) + r[2]) * 2, 1, kTiny);
  EXPECT_NEAR(metric(m, "debug/vllm_local_reverse_kl"),
              (std::exp(-2.0) * -1 + std::exp(-1.25) * -0.75 + std::exp(-1.0) * 11) / 4, kTiny);
}

TEST(Metrics, EveryStackFindsItsNames) {
  const std::vector<float> train = {-1.0f, -2.0f}, rollout = {-1.5f, -2.25f};
  const auto m = mismatch_metrics(train, rollout, std::vector<int64_t>{0});
  for (const char* stem :
       {"kl", "k3_kl", "chi2_token", "chi2_seq", "training_ppl", "rollout_ppl", "training_log_ppl",
        "rollout_log_ppl", "log_ppl_diff", "log_ppl_abs_diff", "ppl_ratio"}) {
    for (const char* prefix : {"mis_", "rollout_corr/"}) {
      EXPECT_EQ(metric(m, std::string(prefix) + stem), metric(m, stem)) << prefix << stem;
      EXPECT_TRUE(std::isfinite(metric(m, stem))) << stem;
    }
  }
  EXPECT_EQ(metric(m, "mis_tis_weight_after_bound"), metric(m, "tis_weight_after_bound"));
  EXPECT_EQ(metric(m, "train/train_current_rollout_logprob_max_abs_diff"), 0.5);
  EXPECT_EQ(metric(m, "train/train_old_rollout_logprob_mismatch_count"), 2.0);
  EXPECT_EQ(metric(m, "mis_rs_mask_fraction_high"), metric(m, "tis_clip_fraction_high"));
  EXPECT_EQ(metric(m, "mismatch_kl"), metric(m, "k3_kl"));  // that stack's formula
  std::set<std::string> names;
  for (const Metric& x : m) EXPECT_TRUE(names.insert(x.name).second) << x.name << " twice";
  EXPECT_GT(names.size(), 80u);
}

TEST(Metrics, LogRatiosAreClampedInChiSquare) {
  const std::vector<float> train = {-1.0f}, rollout = {-101.0f};
  const auto m = mismatch_metrics(train, rollout, std::vector<int64_t>{0});
  // tolerance: the clamp's own formula, in double
  EXPECT_NEAR(metric(m, "chi2_token") / std::exp(40.0), 1.0, 1e-9);
  EXPECT_EQ(metric(m, "tis_truncate_fraction"), 1.0);
  EXPECT_TRUE(std::isnan(metric(m, "training/rollout_probs_diff_std")));
  EXPECT_TRUE(std::isnan(metric(m, "training/rollout_actor_probs_pearson_corr")));
}

TEST(Metrics, CountBitsNotValues) {
  const std::vector<float> train = {0.0f}, rollout = {-0.0f};
  const auto m = mismatch_metrics(train, rollout, std::vector<int64_t>{0});
  EXPECT_EQ(metric(m, "train/train_rollout_logprob_mismatch_count"), 1.0);
  EXPECT_EQ(metric(m, "train/train_rollout_logprob_abs_diff"), 0.0);
  EXPECT_TRUE(std::isnan(metric(m, "no such metric")));
}

TEST(Metrics, CalibrationKnowsPublishedMagnitudes) {
  EXPECT_THAT(calibration(0), HasSubstr("strict target"));
  EXPECT_THAT(calibration(0.011), HasSubstr("healthy bf16 dense runs show"));
  EXPECT_THAT(calibration(0.001), HasSubstr("below the 0.006–0.016"));
  EXPECT_THAT(calibration(0.04), HasSubstr("0.036 and rising"));
  EXPECT_THAT(calibration(0.5), HasSubstr("broken set-ups"));
}

}  // namespace
}  // namespace sb
