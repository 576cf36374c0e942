// The field's names for train/rollout mismatch, computed from two streams of selected
// log-probabilities, so that a report can be laid beside slime, vime, verl, TRL, NeMo-RL or SkyRL
// logs. They describe size; the verdict is bits alone.
//
// With t, r the log-probabilities of training and rollout, d = t − r, ratio = exp(d), E the mean
// over tokens, S the mean over sequences and m_t, m_r the means of one sequence, in double:
//
//   train/train_rollout_logprob_abs_diff           E|d|
//   train/train_rollout_logprob_max_abs_diff       max |d|
//   train/train_rollout_logprob_mismatch_count     tokens whose fp32 bits differ
//   element_count, torch_equal                     tokens; 1 if no bits differ
//   kl                                             E[−d]
//   k3_kl                                          E[ratio − d − 1], through expm1
//   chi2_token, chi2_seq                           E[ratio²] − 1; with d summed over a sequence; d
//                                                  (or its sum) clamped to ±20
//   training_log_ppl, rollout_log_ppl              S[−m_t], S[−m_r]
//   training_ppl, rollout_ppl                      S[exp(−m_t)], S[exp(−m_r)]
//   log_ppl_diff, log_ppl_abs_diff, …_max, …_min   of m_r − m_t over sequences
//   ppl_ratio                                      S[exp(m_r − m_t)]
//   training/rollout_probs_diff_{max,mean,std}     of |exp t − exp r|; std with n − 1
//   training/rollout_actor_probs_pearson_corr      of exp t and exp r
//   sampling/importance_sampling_ratio/{min,mean,max}     of ratio
//   sampling/sampling_logp_difference/{mean,max}          of |d|
//   policy/rollout_train_logprobs_abs_diff_{mean,std,min,max}
//   train/gen_kl_error, token_mult_prob_error      kl; E[exp |d|]
//   tis_truncate_fraction, tis_clip_fraction_high         share of ratio > C, C = 2
//   tis_clip_fraction_low                                 share of ratio < 1/C
//   tis_weight_before_bound, tis_weight_after_bound       E[ratio], E[min(ratio, C)]
//   train/tis, tis_abs, tis_clipfrac                      E[ratio], E|ratio − 1|, that share
//   rs_catastrophic_token_fraction, …_seq_fraction        share of ratio < 1e−4; of its sequences
//   seq_logprob_error_{min,mean,max}                      of E[exp |d|] of one sequence
//   debug/vllm_vs_local_logprob_diff_{mean,max,std}       of |d|
//   debug/vllm_local_reverse_kl                           E[exp(r) · (r − t)]
//   mismatch_kl                                           as k3_kl
//   rollout/log_probs, rollout/rollout_log_probs          E[t], E[r]
//   logprob_abs_diff/{median,p95,p99}                     nearest rank
//
// tis_mask_fraction_{low,high} and rs_mask_fraction_{low,high} are the clip fractions;
// train/train_{current,old}_rollout_logprob_… the first three. The stems of slime's and verl's
// helpers stand again as mis_…, rollout_corr/… and mismatch_…. Bounds are the helpers' defaults.
// What needs a second policy (ois, ppo_kl, pg_clipfrac), an entropy or a threshold that a recipe
// chooses (num_masked_seqs_by_logprob_error) is not in two logs and not here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

struct Metric {
  std::string name;
  double value = 0;  // NaN where undefined (standard deviation of one token, …)
};

// Streams of equal length; starts[i] is the first token of sequence i, each sequence is non-empty.
std::vector<Metric> mismatch_metrics(std::span<const float> train, std::span<const float> rollout,
                                     std::span<const int64_t> starts);

// A metric by name; NaN when it is not there.
double metric(const std::vector<Metric>& metrics, std::string_view name);

// Where a mean |d| lies among published runs, in one sentence.
std::string calibration(double mean_abs_diff);

}  // namespace sb
