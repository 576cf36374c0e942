// What a difference looks like before any operator is suspected. Semantics (4): streams shifted
// against each other, a constant bias, and, in logs that state no run, the spread of another
// temperature.
//
// Selected log-probabilities do not determine a temperature: log p(y; T) = z/T − log Σ exp(z/T),
// and the sum is not in the log. Tokens of one stream only show how wide it spreads, so what is
// said about a temperature is an estimate and says so; `audit` knows the model and says it exactly.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

constexpr int kMaxLag = 8;
constexpr double kFarApart = 0.02;  // mean |Δ| above which streams may be misplaced ones
constexpr int64_t kEnough = 16;     // tokens before a statement about a distribution is made

std::string decimals(double x, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

Streams good_tokens(const std::vector<RowPair>& pairs) {
  Streams s;
  for (const RowPair& p : pairs) {
    for (size_t i = 0; i < p.use.size(); ++i) {
      if (p.use[i] != Use::kGood) continue;
      s.a.push_back(p.a->score.logprobs[i]);
      s.b.push_back(p.b->score.logprobs[i]);
    }
  }
  return s;
}

// How well B[i] agrees with A[i + lag], within rows.
struct Fit {
  int64_t n = 0, equal = 0;
  double sum = 0;
  double share() const { return n ? static_cast<double>(equal) / static_cast<double>(n) : 0; }
  double mean() const { return n ? sum / static_cast<double>(n) : 0; }
};
Fit fit(const std::vector<RowPair>& pairs, int lag) {
  Fit f;
  for (const RowPair& p : pairs) {
    const auto &x = p.a->score.logprobs, &y = p.b->score.logprobs;
    const int64_t n = static_cast<int64_t>(x.size());
    for (int64_t i = std::max(0, -lag); i < n - std::max(0, lag); ++i) {
      const size_t ia = static_cast<size_t>(i + lag), ib = static_cast<size_t>(i);
      if (p.use[ia] != Use::kGood || p.use[ib] != Use::kGood) continue;
      ++f.n;
      f.equal += float_bits(x[ia]) == float_bits(y[ib]);
      f.sum += std::fabs(static_cast<double>(x[ia]) - y[ib]);
    }
  }
  return f;
}

// Streams shifted against each other. Small differences are drift; only streams that are far apart
// where they stand and agree elsewhere are misplaced.
bool find_shift(const std::vector<RowPair>& pairs, Comparison& c, Findings& findings) {
  const Fit straight = fit(pairs, 0);
  if (straight.n < 8 || straight.mean() < kFarApart) return false;
  int best = 0;
  Fit best_fit;
  for (int size = 1; size <= kMaxLag; ++size) {
    for (const int lag : {size, -size}) {
      const Fit f = fit(pairs, lag);
      const bool same_bits = f.n >= 4 && f.share() > 0.5 && f.share() > straight.share() + 0.25;
      const bool close = f.n >= kEnough && f.mean() < 0.1 * straight.mean();
      if (!same_bits && !close) continue;
      if (best == 0 || f.share() > best_fit.share() ||
          (f.share() == best_fit.share() && f.mean() < best_fit.mean())) {
        best = lag;
        best_fit = f;
      }
    }
  }
  if (best == 0) return false;
  const int size = std::abs(best);
  const std::string by = size == 1 ? "one" : std::to_string(size);
  findings.add(
      Code::kSemanticsDiffer,
      "the log-probabilities are shifted by " + by + ": B[i] holds what A[i" +
          (best > 0 ? "+" : "−") + std::to_string(size) + "] holds (mean |Δ| " +
          decimals(best_fit.mean()) + " instead of " + decimals(straight.mean()) +
          "); one side takes the logits of a token's own position where those before it belong");
  c.signatures.push_back("shift");
  return true;
}

// Mean, deviation and correlation of the streams and of their difference b − a.
struct Moments {
  double n = 0, mean_a = 0, mean_b = 0, mean_d = 0, sd_a = 0, sd_b = 0, sd_d = 0, correlation = 0;
  double min_d = 0, max_d = 0, below = 0, above = 0;  // sums of the negative and positive parts
};
Moments moments(const Streams& s) {
  Moments m;
  m.n = static_cast<double>(s.a.size());
  m.min_d = m.max_d = s.b[0] - s.a[0];
  for (size_t i = 0; i < s.a.size(); ++i) {
    const double d = s.b[i] - s.a[i];
    m.mean_a += s.a[i] / m.n;
    m.mean_b += s.b[i] / m.n;
    m.mean_d += d / m.n;
    m.min_d = std::min(m.min_d, d);
    m.max_d = std::max(m.max_d, d);
    (d < 0 ? m.below : m.above) += d;
  }
  double aa = 0, bb = 0, dd = 0, ab = 0;
  for (size_t i = 0; i < s.a.size(); ++i) {
    const double u = s.a[i] - m.mean_a, v = s.b[i] - m.mean_b, w = s.b[i] - s.a[i] - m.mean_d;
    aa += u * u, bb += v * v, dd += w * w, ab += u * v;
  }
  m.sd_a = std::sqrt(aa / (m.n - 1));
  m.sd_b = std::sqrt(bb / (m.n - 1));
  m.sd_d = std::sqrt(dd / (m.n - 1));
  m.correlation = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
  return m;
}

// One side is above the other by the same amount everywhere: log S of a mass S that was kept.
bool find_bias(const Moments& m, Comparison& c, Findings& findings) {
  const double bias = std::fabs(m.mean_d);
  if (bias < 0.005 || m.sd_d > 0.2 * bias || m.min_d * m.max_d <= 0) return false;
  const char* high = m.mean_d > 0 ? "B" : "A";
  const char* low = m.mean_d > 0 ? "A" : "B";
  findings.add(Code::kSemanticsDiffer,
               "a constant bias: " + std::string(high) + " is above " + low + " by " +
                   decimals(bias) + " on every token (standard deviation " + decimals(m.sd_d) +
                   "), which is −log S with S = " + decimals(std::exp(-bias)) + ": " + high +
                   " was renormalised over part of the vocabulary, as top-p and "
                   "top-k do, or sums over fewer columns");
  c.signatures.push_back("constant-bias");
  return true;
}

// The temperature that all rows of a side state; nothing if they state none or several.
std::optional<float> stated(const ScoreSide& s) {
  if (!s.external) return s.header.temperature;
  std::optional<float> t;
  for (const auto& row : s.rows) {
    if (!row.temperature || (t && *t != *row.temperature)) return {};
    t = row.temperature;
  }
  return t;
}

// The spread of a stream goes with 1/T where likely and unlikely tokens are seen.
bool find_temperature(const ScoreSide& a, const ScoreSide& b, const Moments& m, Comparison& c,
                      Findings& findings) {
  if (!a.external && !b.external) return false;  // both state what they did
  if (m.n < 2 * kEnough || m.correlation < 0.9 || m.sd_a == 0) return false;
  const double ratio = m.sd_b / m.sd_a;
  // The excess of width must explain the difference; rounding and other weights do not widen.
  if (std::fabs(ratio - 1) < 0.1 || m.sd_d > 2 * std::fabs(m.sd_b - m.sd_a)) return false;
  const bool b_wide = ratio > 1;
  const char* wide = b_wide ? "B" : "A";
  const char* narrow = b_wide ? "A" : "B";
  const double estimate = b_wide ? 1 / ratio : ratio;  // T of the wide one over T of the narrow one
  const auto ta = stated(a), tb = stated(b);
  const auto says = [](const std::optional<float>& t) {
    return t ? shortest(*t) : std::string("not stated");
  };
  findings.add(Code::kSemanticsDiffer,
               std::string("a temperature on one side only, or twice: ") + wide +
                   " spreads wider than " + narrow + " (correlation " + decimals(m.correlation) +
                   "), as if its logits were divided by roughly " + decimals(estimate, "%.2g") +
                   " once more (or not softcapped); A temperature " + says(ta) + ", B " + says(tb) +
                   "; estimated from the selected log-probabilities of " +
                   grouped(static_cast<int64_t>(m.n)) + " tokens, samebits audit tells exactly");
  c.signatures.push_back("temperature");
  return true;
}

}  // namespace

void find_signatures(const ScoreSide& a, const ScoreSide& b, const std::vector<RowPair>& pairs,
                     Comparison& c, Findings& findings) {
  const Streams s = good_tokens(pairs);
  find_broken_data(pairs, s, c, findings);
  // Filler would pass for anything below.
  if (s.a.empty() || s.a == s.b || findings.has(Code::kBrokenData)) return;
  if (find_shift(pairs, c, findings)) return;
  if (static_cast<int64_t>(s.a.size()) < kEnough) return;
  const Moments m = moments(s);
  if (find_bias(m, c, findings) || find_temperature(a, b, m, c, findings)) return;
  const double gain = m.above + m.below;  // sums of both signs
  if (m.n >= 2 * kEnough && std::fabs(gain) / m.n >= 0.005 &&
      std::min(m.above, -m.below) <= 0.02 * std::max(m.above, -m.below)) {
    const bool b_high = gain > 0;
    c.notes.push_back(std::string(b_high ? "B" : "A") + " is never clearly below " +
                      (b_high ? "A" : "B") + " (mean " + decimals(std::fabs(gain) / m.n) +
                      " above, at most " + decimals(std::max(m.max_d, -m.min_d)) +
                      "), as when its probabilities were renormalised over a top-p or top-k set "
                      "that differs by token, or a lower temperature was applied to likely tokens");
    c.signatures.push_back("one-sided");
  }
}

}  // namespace sb
