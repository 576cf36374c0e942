// Scores against scores: rows are paired by id and the stream of one row by position.
#include <algorithm>
#include <cmath>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

Difference difference_at(const RowPair& p, size_t i) {
  const float a = p.a->score.logprobs[i], b = p.b->score.logprobs[i];
  return {.boundary = "logp",
          .layer = -1,
          .id = p.a->score.id,
          .pos = p.a->score.prompt_len + static_cast<int64_t>(i),
          .bits_a = float_bits(a),
          .bits_b = float_bits(b),
          .is_value = true,
          .value_a = a,
          .value_b = b,
          .ulp = ulp_distance(a, b),
          .non_finite = false};
}

// Counts, first, largest and metrics over everything that is paired, not masked and a number.
void compare_numbers(const std::vector<RowPair>& pairs, Comparison& c) {
  std::vector<float> stream_a, stream_b;
  std::vector<int64_t> starts;
  double largest = -1;
  for (const RowPair& p : pairs) {
    const auto &x = p.a->score.logprobs, &y = p.b->score.logprobs;
    RowCount row;
    row.id = p.a->score.id;
    for (size_t i = 0; i < x.size(); ++i) {
      row.masked += p.use[i] == Use::kMasked;
      row.bad += p.use[i] == Use::kBad;
      if (p.use[i] != Use::kGood) continue;
      if (row.compared++ == 0) starts.push_back(static_cast<int64_t>(stream_a.size()));
      stream_a.push_back(x[i]);
      stream_b.push_back(y[i]);
      if (float_bits(x[i]) == float_bits(y[i])) continue;
      if (row.differing++ == 0) row.first = difference_at(p, i);
      if (!c.first) c.first = row.first;
      const double d = std::fabs(static_cast<double>(x[i]) - y[i]);
      row.max_abs_diff = std::max(row.max_abs_diff, d);
      if (d > largest) {
        largest = d;
        c.largest = difference_at(p, i);
      }
    }
    c.masked += row.masked;
    c.masked_rows += row.masked == static_cast<int64_t>(x.size());
    c.differing += row.differing;
    c.rows.push_back(std::move(row));
  }
  c.compared = static_cast<int64_t>(stream_a.size());
  c.sequences = static_cast<int64_t>(starts.size());
  if (c.compared == 0) return;
  c.a_is_train = c.a.schedule == "train" && c.b.schedule != "train";
  c.metrics = c.a_is_train ? mismatch_metrics(stream_a, stream_b, starts)
                           : mismatch_metrics(stream_b, stream_a, starts);
  // Values that are no numbers are in no mean; the field counts them in the rollout's stream.
  const int64_t bad = c.a_is_train ? c.bad_b : c.bad_a;
  for (Metric& m : c.metrics) {
    if (m.name == "torch_equal" && c.bad_a + c.bad_b > 0) m.value = 0;
  }
  c.metrics.push_back({"loss/generator_logprob_nan_frac",
                       static_cast<double>(bad) / static_cast<double>(c.compared + bad)});
}

std::string hint_of(const Comparison& c) {
  if (c.comparator == kCrossProfileComparator) {
    return "two profiles round matrix products differently, so differences are expected and say "
           "nothing about either run; compare runs of one profile to check it";
  }
  const std::string size = calibration(metric(c.metrics, "train/train_rollout_logprob_abs_diff"));
  if (c.a.profile.empty() && c.b.profile.empty()) {
    return size +
           ". To learn which engine departs from the declared arithmetic, rescore rows of "
           "either log: samebits audit DIR --log LOG";
  }
  if (c.a.profile.empty() || c.b.profile.empty()) {
    return size +
           ". The log's engine runs other arithmetic; whether it means the same is told by "
           "samebits audit DIR --log LOG";
  }
  return size +
         ". Scores show that two runs part, traces show where: score both sides with --trace and "
         "compare the traces";
}

}  // namespace

Comparison compare_scores(const ScoreSide& a, const ScoreSide& b, const CompareOptions& options) {
  Comparison c;
  c.kind = "score";
  c.name_a = a.name;
  c.name_b = b.name;
  Findings findings;
  const std::vector<RowPair> pairs = pair_rows(a, b, findings);
  triage_headers(a.header, b.header, options, c, findings);
  if (a.external || b.external) triage_rows(a, b, pairs, c, findings);
  find_signatures(a, b, pairs, c, findings);
  compare_numbers(pairs, c);
  std::string drift;
  if (c.first) {
    const Difference& d = *c.first;
    drift = grouped(c.differing) + " of " + grouped(c.compared) +
            " log-probabilities differ, first in row " + in_quotes(d.id) + " at token " +
            std::to_string(d.pos) + ": A " + shortest(d.value_a) + ", B " + shortest(d.value_b) +
            ", " + grouped(d.ulp) + " ulp apart";
    c.hint = hint_of(c);
  }
  if (c.masked) {
    c.notes.push_back(
        grouped(c.masked) + (c.masked == 1 ? " scored token is" : " scored tokens are") +
        " masked and left out" +
        (c.masked_rows
             ? "; of " + grouped(c.masked_rows) + (c.masked_rows == 1 ? " row" : " rows") + " all"
             : ""));
  }
  conclude(c, drift, findings);
  findings.settle(c);
  if (c.code != Code::kDrift) c.hint.clear();  // it speaks of operators
  if (c.code == Code::kEqual) {
    c.finding = "all " + grouped(c.compared) + " log-probabilities of " + grouped(c.sequences) +
                (c.sequences == 1 ? " row" : " rows") + " have equal bits";
  }
  return c;
}

Comparison compare_scores(const ScoreFile& a, const ScoreFile& b, const CompareOptions& options) {
  return compare_scores(score_side(a, "A"), score_side(b, "B"), options);
}

}  // namespace sb
