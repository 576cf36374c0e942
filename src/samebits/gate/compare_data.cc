// Numbers that cannot be compared as what they claim to be. Broken data (6): values that are no
// log-probabilities, filler, a stream of one value. What a log did to its numbers when it was
// written (bf16, few decimals) is a note.
#include <algorithm>
#include <cmath>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

// Runs of exact zeros this long, where the other side is mostly clearly below 0, are filler.
constexpr int kZeroRun = 4;
constexpr float kClearlyBelowZero = -0.01f;
constexpr int64_t kConstantStream = 8;  // that many equal values and no other: nothing was measured
constexpr int64_t kEnough = 16;         // tokens before a statement about a distribution is made

void find_bad_values(const std::vector<RowPair>& pairs, Comparison& c, Findings& findings) {
  for (const bool is_a : {true, false}) {
    int64_t nan = 0, inf = 0, positive = 0;
    std::string first;
    for (const RowPair& p : pairs) {
      const auto& row = is_a ? p.a->score : p.b->score;
      for (size_t i = 0; i < p.use.size(); ++i) {
        const float x = row.logprobs[i];
        if (p.use[i] != Use::kBad || (std::isfinite(x) && x <= 0)) continue;
        ++(std::isnan(x) ? nan : std::isinf(x) ? inf : positive);
        if (first.empty()) {
          first = "row " + in_quotes(row.id) + ", token " +
                  std::to_string(row.prompt_len + static_cast<int64_t>(i)) +
                  (std::isfinite(x) ? ": " + shortest(x) : "");
        }
      }
    }
    const int64_t bad = nan + inf + positive;
    (is_a ? c.bad_a : c.bad_b) = bad;
    if (bad == 0) continue;
    std::string kinds;
    const auto kind = [&](int64_t n, const char* what) {
      if (n) kinds += (kinds.empty() ? "" : ", ") + grouped(n) + what;
    };
    kind(nan, " NaN or null");
    kind(inf, " infinite");
    kind(positive, " positive");
    findings.add(Code::kBrokenData, std::string(is_a ? "A" : "B") + " holds " + grouped(bad) +
                                        (bad == 1 ? " value that is no log-probability ("
                                                  : " values that are no log-probabilities (") +
                                        kinds + "), first in " + first);
    c.signatures.push_back("bad-values");
  }
}

// Log-probabilities that were never computed: filled with 0.0.
void find_zero_fill(const std::vector<RowPair>& pairs, Comparison& c, Findings& findings) {
  for (const bool is_a : {true, false}) {
    Tally rows;
    for (const RowPair& p : pairs) {
      const auto& mine = (is_a ? p.a : p.b)->score.logprobs;
      const auto& other = (is_a ? p.b : p.a)->score.logprobs;
      int run = 0, clear = 0;
      for (size_t i = 0; i < mine.size(); ++i) {
        const bool zero = p.use[i] != Use::kMasked && mine[i] == 0;
        run = zero ? run + 1 : 0;
        clear = zero ? clear + (other[i] < kClearlyBelowZero) : 0;
        if (run < kZeroRun || clear + 1 < kZeroRun || clear * 2 <= run) continue;
        rows.add(p.a->score.id);
        break;
      }
    }
    if (rows.count == 0) continue;
    findings.add(Code::kBrokenData,
                 std::string(is_a ? "A" : "B") +
                     " holds runs of exact 0.0 where the other side does not, as filler for "
                     "missing log-probabilities: " +
                     counted(rows.count, "one row", "rows", rows.first));
    c.signatures.push_back("filler-zeros");
  }
}

void find_constant_stream(const Streams& s, Comparison& c, Findings& findings) {
  for (const bool is_a : {true, false}) {
    const auto& x = is_a ? s.a : s.b;
    if (static_cast<int64_t>(x.size()) < kConstantStream) continue;
    if (std::any_of(x.begin(), x.end(), [&](double v) { return v != x[0]; })) continue;
    findings.add(Code::kBrokenData, std::string(is_a ? "A" : "B") + " holds the one value " +
                                        shortest(static_cast<float>(x[0])) + " for all " +
                                        grouped(static_cast<int64_t>(x.size())) +
                                        " tokens: a placeholder, nothing was measured");
    c.signatures.push_back("constant-stream");
  }
}

// Significant decimals that the widest value of a stream needs.
int digits_needed(const std::vector<double>& x) {
  int most = 0;
  for (const double v : x) {
    const std::string text = shortest(static_cast<float>(v));
    const std::string mantissa = text.substr(0, text.find('e'));
    const size_t first = mantissa.find_first_of("123456789");
    if (first == mantissa.npos) continue;
    int digits = 0;
    for (size_t i = first; i < mantissa.size(); ++i) digits += mantissa[i] != '.';
    most = std::max(most, digits);
  }
  return most;
}

void find_rounding(const Streams& s, Comparison& c) {
  const auto all_bf16 = [](const std::vector<double>& x) {
    return std::all_of(x.begin(), x.end(),
                       [](double v) { return (float_bits(static_cast<float>(v)) & 0xffffu) == 0; });
  };
  for (const bool is_a : {true, false}) {
    const auto& x = is_a ? s.a : s.b;
    const auto& other = is_a ? s.b : s.a;
    const std::string side = is_a ? "A" : "B";
    if (all_bf16(x) && !all_bf16(other)) {
      c.notes.push_back("every value of " + side +
                        " is a bf16 number and those of the other side are not: the "
                        "log-probabilities of " +
                        side + " were kept in bf16, and their fp32 bits are lost");
      c.signatures.push_back("bf16-log");
    } else if (const int mine = digits_needed(x); mine <= 6 && digits_needed(other) >= 8) {
      c.notes.push_back("no value of " + side + " has more than " + std::to_string(mine) +
                        " digits: they were rounded when the log was written, and fp32 needs 9");
      c.signatures.push_back("rounded-log");
    }
  }
}

}  // namespace

void find_broken_data(const std::vector<RowPair>& pairs, const Streams& s, Comparison& c,
                      Findings& findings) {
  find_bad_values(pairs, c, findings);
  find_zero_fill(pairs, c, findings);
  find_constant_stream(s, c, findings);
  if (static_cast<int64_t>(s.a.size()) >= kEnough && s.a != s.b) find_rounding(s, c);
}

}  // namespace sb
