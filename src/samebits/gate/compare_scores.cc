// Scores against scores: rows are paired by id and the stream of one row by position.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

// Runs of exact zeros this long, where the other side is clearly below 0, are filler.
constexpr int kZeroRun = 4;
constexpr float kClearlyBelowZero = -0.01f;

struct Pair {
  const ScoreSide::Row* a;
  const ScoreSide::Row* b;
};

// Counts cases of one kind and remembers the first row.
struct Tally {
  int64_t count = 0;
  std::string first;
  void add(const std::string& id) {
    if (count++ == 0) first = id;
  }
};

// Rows that can be laid side by side, in A's order; everything else is a finding.
std::vector<Pair> pair_rows(const ScoreSide& a, const ScoreSide& b, Findings& findings) {
  std::unordered_map<std::string, const ScoreSide::Row*> by_id;
  for (const auto& row : b.rows) by_id[row.score.id] = &row;
  Tally only_a, only_b, tokens, prompts, lengths, masks;
  std::vector<Pair> pairs;
  for (const auto& row : a.rows) {
    const std::string& id = row.score.id;
    const auto it = by_id.find(id);
    if (it == by_id.end()) {
      only_a.add(id);
      continue;
    }
    const ScoreSide::Row& other = *it->second;
    by_id.erase(it);
    if (row.score.tokens != other.score.tokens) {
      tokens.add(id);
    } else if (row.score.prompt_len != other.score.prompt_len) {
      prompts.add(id);
    } else if (row.score.logprobs.size() != other.score.logprobs.size()) {
      lengths.add(id);
    } else if (!row.mask.empty() && !other.mask.empty() && row.mask != other.mask) {
      masks.add(id);
    } else {
      pairs.push_back({&row, &other});
    }
  }
  for (const auto& row : b.rows) {
    if (by_id.count(row.score.id)) only_b.add(row.score.id);
  }
  const auto report = [&](const Tally& t, const char* one, const char* many) {
    if (t.count) findings.add(Code::kNotComparable, counted(t.count, one, many, t.first));
  };
  report(only_a, "one row is only in A", "rows are only in A");
  report(only_b, "one row is only in B", "rows are only in B");
  report(tokens, "the token ids of one row differ", "rows differ in their token ids");
  report(prompts, "the prompt_len of one row differs", "rows differ in prompt_len");
  report(lengths, "the number of logprobs of one row differs", "rows differ in number of logprobs");
  report(masks, "the masks of one row differ", "rows differ in their masks");
  return pairs;
}

// Sampling semantics that external logs state per row.
void triage_rows(const ScoreSide& a, const ScoreSide& b, const std::vector<Pair>& pairs,
                 Comparison& c, Findings& findings) {
  const auto temperature = [](const ScoreSide& s, const ScoreSide::Row& r) {
    return r.temperature || s.external ? r.temperature : std::optional<float>(s.header.temperature);
  };
  const auto suppress = [](const ScoreSide& s, const ScoreSide::Row& r) {
    return r.suppress || s.external ? r.suppress : std::optional(s.header.suppress);
  };
  Tally temperatures, suppressed, unstated;
  std::string values;
  for (const Pair& p : pairs) {
    const auto ta = temperature(a, *p.a), tb = temperature(b, *p.b);
    if (ta && tb && float_bits(*ta) != float_bits(*tb)) {
      if (temperatures.count == 0) values = "A " + shortest(*ta) + ", B " + shortest(*tb) + "; ";
      temperatures.add(p.a->score.id);
    }
    if (!ta || !tb) unstated.add(p.a->score.id);
    const auto sa = suppress(a, *p.a), sb = suppress(b, *p.b);
    if (sa && sb && *sa != *sb) suppressed.add(p.a->score.id);
  }
  if (unstated.count) {
    c.notes.push_back(
        "not every row states its temperature on both sides; it is not checked there");
  }
  if (temperatures.count) {
    findings.add(Code::kSemanticsDiffer,
                 "the temperatures differ: " + values +
                     counted(temperatures.count, "one row", "rows", temperatures.first));
  }
  if (suppressed.count) {
    findings.add(Code::kSemanticsDiffer,
                 "the suppressed ids differ: " +
                     counted(suppressed.count, "one row", "rows", suppressed.first));
  }
}

// Log-probabilities that were never computed: filled with 0.0.
void find_zero_fill(const std::vector<Pair>& pairs, Findings& findings) {
  Tally in_a, in_b;
  const auto filled = [](const std::vector<float>& x, const std::vector<float>& other) {
    int run = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      run = x[i] == 0 && other[i] < kClearlyBelowZero ? run + 1 : 0;
      if (run == kZeroRun) return true;
    }
    return false;
  };
  for (const auto& [a, b] : pairs) {
    if (filled(a->score.logprobs, b->score.logprobs)) in_a.add(a->score.id);
    if (filled(b->score.logprobs, a->score.logprobs)) in_b.add(b->score.id);
  }
  const auto report = [&](const Tally& t, const std::string& side) {
    if (t.count == 0) return;
    findings.add(
        Code::kBrokenData,
        side +
            " holds runs of exact 0.0 where the other side does not, as filler for missing "
            "log-probabilities: " +
            counted(t.count, "one row", "rows", t.first));
  };
  report(in_a, "A");
  report(in_b, "B");
}

// Streams shifted against each other: B[i] holds what A[i + lag] holds.
void find_shift(const std::vector<Pair>& pairs, Findings& findings) {
  struct Fit {
    int64_t n = 0, equal = 0;
    double sum = 0;
    double share() const { return n ? static_cast<double>(equal) / static_cast<double>(n) : 0; }
    double mean() const { return n ? sum / static_cast<double>(n) : 0; }
  };
  const auto fit = [&](int lag) {
    Fit f;
    for (const auto& [a, b] : pairs) {
      const auto &x = a->score.logprobs, &y = b->score.logprobs;
      const int64_t n = static_cast<int64_t>(x.size());
      for (int64_t i = std::max(0, -lag); i < n - std::max(0, lag); ++i) {
        const float u = x[static_cast<size_t>(i + lag)], v = y[static_cast<size_t>(i)];
        ++f.n;
        f.equal += float_bits(u) == float_bits(v);
        f.sum += std::fabs(static_cast<double>(u) - v);
      }
    }
    return f;
  };
  const Fit straight = fit(0);
  // Small differences are drift; only streams far apart can be misplaced ones.
  if (straight.n < 8 || straight.mean() < 0.1) return;
  for (const int lag : {1, -1, 2, -2}) {
    const Fit f = fit(lag);
    const bool same_bits = f.n >= 4 && f.share() > 0.5 && f.share() > straight.share() + 0.25;
    const bool close = f.n >= 16 && f.mean() < 0.1 * straight.mean();
    if (!same_bits && !close) continue;
    findings.add(Code::kNotComparable, "the log-probabilities are shifted: B[i] holds what A[i" +
                                           std::string(lag > 0 ? "+" : "−") +
                                           std::to_string(std::abs(lag)) + "] holds (mean |Δ| " +
                                           shortest(static_cast<float>(f.mean())) + " instead of " +
                                           shortest(static_cast<float>(straight.mean())) + ")");
    return;
  }
}

Difference difference_at(const Pair& p, size_t i) {
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

// Counts, first, largest and metrics over everything that is paired and not masked.
void compare_numbers(const std::vector<Pair>& pairs, Comparison& c) {
  std::vector<float> stream_a, stream_b;
  std::vector<int64_t> starts;
  double largest = -1;
  for (const Pair& p : pairs) {
    const auto &x = p.a->score.logprobs, &y = p.b->score.logprobs;
    const auto& mask = p.a->mask.empty() ? p.b->mask : p.a->mask;
    const size_t before = stream_a.size();
    for (size_t i = 0; i < x.size(); ++i) {
      if (!mask.empty() && mask[i] == 0) {
        ++c.masked;
        continue;
      }
      stream_a.push_back(x[i]);
      stream_b.push_back(y[i]);
      if (float_bits(x[i]) == float_bits(y[i])) continue;
      ++c.differing;
      if (!c.first) c.first = difference_at(p, i);
      const double d = std::fabs(static_cast<double>(x[i]) - y[i]);
      if (d > largest) {
        largest = d;
        c.largest = difference_at(p, i);
      }
    }
    if (stream_a.size() > before) starts.push_back(static_cast<int64_t>(before));
  }
  c.compared = static_cast<int64_t>(stream_a.size());
  c.sequences = static_cast<int64_t>(starts.size());
  if (c.compared == 0) return;
  c.a_is_train = c.a.schedule == "train" && c.b.schedule != "train";
  c.metrics = c.a_is_train ? mismatch_metrics(stream_a, stream_b, starts)
                           : mismatch_metrics(stream_b, stream_a, starts);
}

}  // namespace

ScoreSide score_side(ScoreFile file, std::string name) {
  ScoreSide side{
      .name = std::move(name), .header = std::move(file.header), .external = false, .rows = {}};
  for (ScoreRow& row : file.rows) side.rows.push_back({std::move(row), {}, {}, {}});
  return side;
}

ScoreSide score_side(std::vector<TokenRow> rows, std::string name) {
  ScoreSide side{.name = std::move(name), .header = {}, .external = true, .rows = {}};
  for (TokenRow& row : rows) {
    SB_ASSERT(row.logprobs.has_value(), "an external log needs log-probabilities");
    side.rows.push_back(
        {{std::move(row.id), token_digest(row.tokens), row.prompt_len, std::move(*row.logprobs)},
         row.mask ? std::move(*row.mask) : std::vector<uint8_t>{},
         row.temperature,
         std::move(row.suppress)});
  }
  return side;
}

Comparison compare_scores(const ScoreSide& a, const ScoreSide& b, const CompareOptions& options) {
  Comparison c;
  c.kind = "score";
  c.name_a = a.name;
  c.name_b = b.name;
  Findings findings;
  const std::vector<Pair> pairs = pair_rows(a, b, findings);
  triage_headers(a.header, b.header, options, c, findings);
  if (a.external || b.external) triage_rows(a, b, pairs, c, findings);
  find_zero_fill(pairs, findings);
  find_shift(pairs, findings);
  compare_numbers(pairs, c);
  std::string drift;
  if (c.first) {
    const Difference& d = *c.first;
    drift = grouped(c.differing) + " of " + grouped(c.compared) +
            " log-probabilities differ, first in row " + in_quotes(d.id) + " at token " +
            std::to_string(d.pos) + ": A " + shortest(d.value_a) + ", B " + shortest(d.value_b) +
            ", " + grouped(d.ulp) + " ulp apart";
    c.hint =
        calibration(metric(c.metrics, "train/train_rollout_logprob_abs_diff")) +
        ". Scores show that two runs part, traces show where: score both sides with --trace and "
        "compare the traces";
  }
  if (c.masked) c.notes.push_back(grouped(c.masked) + " scored tokens are masked and left out");
  conclude(c, drift, findings);
  findings.settle(c);
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
