// Traces against traces: per-row digests of every boundary, walked in causal order.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

// ---- the value behind the digest of a row of one element ----

// Inverse of an odd number modulo 2^64: Newton's step doubles the number of right bits.
constexpr uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;  // three bits are right
  for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
  return x;
}
constexpr uint64_t unshift(uint64_t x, int n) {  // inverse of x ^ (x >> n), for n of 22 or more
  return x ^ (x >> n) ^ (x >> (2 * n));
}
// mix64 is a bijection, so the digest of a single element gives its bits back.
constexpr uint64_t single_element(uint64_t digest) {
  uint64_t x = unshift(digest, 31) * inverse(0x94D049BB133111EBull);
  x = unshift(x, 27) * inverse(0xBF58476D1CE4E5B9ull);
  return unshift(x, 30) ^ 0x9E3779B97F4A7C15ull;
}
static_assert(single_element(digest_element(0xbf800000u, 0)) == 0xbf800000u);
static_assert(single_element(digest_element(0, 0)) == 0);

// ---- pairing ----

// One sequence on both sides: equal runs of rows, and of scored rows.
struct SeqPair {
  size_t seq_a = 0, row_a = 0, row_b = 0, rows = 0;  // first rows and their number
  size_t scored_a = 0, scored_b = 0, scored = 0;     // the same among scored rows
};

struct Range {
  size_t row = 0, rows = 0, scored = 0, num_scored = 0;
};

// Rows are ascending by sequence, so each sequence is one range.
std::vector<Range> ranges(const TraceView& v) {
  std::vector<Range> out(v.ids.size());
  for (size_t i = 0; i < v.rows.size(); ++i) {
    Range& r = out[static_cast<size_t>(v.rows[i].seq)];
    if (r.rows++ == 0) r.row = i;
  }
  for (size_t i = 0; i < v.scored.size(); ++i) {
    Range& r = out[static_cast<size_t>(v.rows[static_cast<size_t>(v.scored[i])].seq)];
    if (r.num_scored++ == 0) r.scored = i;
  }
  return out;
}

std::vector<SeqPair> pair_sequences(const TraceView& a, const TraceView& b, Findings& findings) {
  std::unordered_map<std::string_view, size_t> index_b;
  for (size_t i = 0; i < b.ids.size(); ++i) index_b[b.ids[i]] = i;
  const auto ranges_a = ranges(a), ranges_b = ranges(b);
  std::vector<SeqPair> pairs;
  std::map<std::string, std::pair<int64_t, std::string>> problems;
  const auto problem = [&](const std::string& what, const std::string& id) {
    auto& [count, first] = problems[what];
    if (count++ == 0) first = id;
  };
  for (size_t i = 0; i < a.ids.size(); ++i) {
    const auto it = index_b.find(a.ids[i]);
    if (it == index_b.end()) {
      problem("only in A", a.ids[i]);
      continue;
    }
    const size_t j = it->second;
    index_b.erase(it);
    const Range &x = ranges_a[i], &y = ranges_b[j];
    bool positions = x.rows == y.rows;
    for (size_t k = 0; positions && k < x.rows; ++k) {
      positions = a.rows[x.row + k].pos == b.rows[y.row + k].pos;
    }
    bool scored = x.num_scored == y.num_scored;
    for (size_t k = 0; positions && scored && k < x.num_scored; ++k) {
      scored = static_cast<size_t>(a.scored[x.scored + k]) - x.row ==
               static_cast<size_t>(b.scored[y.scored + k]) - y.row;
    }
    if (a.tokens[i] != b.tokens[j]) {
      problem("with differing token ids", a.ids[i]);
    } else if (!positions) {
      problem("with differing positions", a.ids[i]);
    } else if (!scored) {
      problem("with differing scored positions", a.ids[i]);
    } else {
      pairs.push_back({i, x.row, y.row, x.rows, x.scored, y.scored, x.num_scored});
    }
  }
  for (const auto& id : b.ids) {
    if (index_b.count(id)) problem("only in B", id);
  }
  for (const auto& [what, found] : problems) {
    findings.add(Code::kNotComparable,
                 counted(found.first, "one sequence " + what, "sequences " + what, found.second));
  }
  return pairs;
}

struct ColumnPair {
  const TraceColumnView* a;
  const TraceColumnView* b;
};

// Boundaries on both sides, in A's causal order; a boundary of one side only is a finding.
std::vector<ColumnPair> pair_columns(const TraceView& a, const TraceView& b, Findings& findings) {
  std::map<std::string, const TraceColumnView*> by_name;
  for (const auto& c : b.columns) by_name[boundary_name(c.boundary)] = &c;
  std::vector<ColumnPair> pairs;
  std::vector<std::string> only_a, only_b;
  for (const auto& c : a.columns) {
    const std::string name = boundary_name(c.boundary);
    const auto it = by_name.find(name);
    if (it == by_name.end()) {
      only_a.push_back(name);
      continue;
    }
    const TraceColumnView& other = *it->second;
    by_name.erase(it);
    if (c.dtype != other.dtype || c.width != other.width || c.scored != other.scored) {
      const auto shape = [](const TraceColumnView& v) {
        return v.dtype + "[" + std::to_string(v.width) + "]" + (v.scored ? " of scored rows" : "");
      };
      findings.add(Code::kNotComparable,
                   name + " is " + shape(c) + " in A and " + shape(other) + " in B");
    } else {
      pairs.push_back({&c, &other});
    }
  }
  for (const auto& c : b.columns) {
    if (by_name.count(boundary_name(c.boundary))) only_b.push_back(boundary_name(c.boundary));
  }
  const auto report = [&](const std::vector<std::string>& names, const std::string& side) {
    if (names.empty()) return;
    findings.add(Code::kNotComparable,
                 grouped(static_cast<int64_t>(names.size())) +
                     (names.size() == 1 ? " boundary is" : " boundaries are") + " only in " + side +
                     ", first " + names[0]);
  };
  report(only_a, "A");
  report(only_b, "B");
  return pairs;
}

// ---- numbers ----

// The first element that differs, else the first that is not finite.
void set_element(Difference& d, const ColumnPair& col, size_t ia, size_t ib) {
  d.is_bf16 = col.a->dtype == "bf16";
  const auto value = [&](uint32_t bits) { return bits_float(d.is_bf16 ? bits << 16 : bits); };
  int64_t at = -1;
  for (int64_t i = 0; i < col.a->width; ++i) {
    const uint32_t xa = col.a->bits_at(ia, i), xb = col.b->bits_at(ib, i);
    if (xa != xb) {
      at = i;
      break;
    }
    if (at < 0 && !std::isfinite(value(xa))) at = i;
  }
  if (at < 0) return;  // check_trace saw that values and digests agree
  d.is_value = true;
  d.column = at;
  d.bits_a = col.a->bits_at(ia, at);
  d.bits_b = col.b->bits_at(ib, at);
  d.value_a = value(static_cast<uint32_t>(d.bits_a));
  d.value_b = value(static_cast<uint32_t>(d.bits_b));
  if (!d.non_finite) d.ulp = ulp_distance(d.value_a, d.value_b) >> (d.is_bf16 ? 16 : 0);
}

Difference difference_at(const TraceView& a, const ColumnPair& col, const SeqPair& s, size_t k) {
  const bool scored = col.a->scored;
  const size_t ia = (scored ? s.scored_a : s.row_a) + k, ib = (scored ? s.scored_b : s.row_b) + k;
  const size_t row = scored ? static_cast<size_t>(a.scored[ia]) : ia;
  Difference d;
  d.boundary = boundary_name(col.a->boundary);
  d.layer = col.a->boundary.layer;
  d.id = a.ids[s.seq_a];
  d.pos = a.rows[row].pos;
  d.bits_a = col.a->digests[ia];
  d.bits_b = col.b->digests[ib];
  d.non_finite = col.a->non_finite[ia] || col.b->non_finite[ib];
  if (!col.a->values.empty() && !col.b->values.empty()) {
    set_element(d, col, ia, ib);
  } else if (col.a->width == 1 && col.a->dtype == "f32") {
    const uint64_t xa = single_element(d.bits_a), xb = single_element(d.bits_b);
    if (xa <= UINT32_MAX && xb <= UINT32_MAX) {
      d.is_value = true;
      d.bits_a = xa;
      d.bits_b = xb;
      d.value_a = bits_float(static_cast<uint32_t>(xa));
      d.value_b = bits_float(static_cast<uint32_t>(xb));
      if (!d.non_finite) d.ulp = ulp_distance(d.value_a, d.value_b);
    }
  }
  return d;
}

// What is asked of one boundary.
struct ColumnResult {
  BoundaryCount count;
  std::optional<Difference> first, largest;
  int64_t lowest_pos = INT64_MAX;
};

ColumnResult compare_column(const TraceView& a, const ColumnPair& col,
                            const std::vector<SeqPair>& pairs) {
  ColumnResult out;
  out.count.boundary = boundary_name(col.a->boundary);
  double largest = -1;
  for (const SeqPair& s : pairs) {
    const bool scored = col.a->scored;
    const size_t ia = scored ? s.scored_a : s.row_a, ib = scored ? s.scored_b : s.row_b;
    const size_t n = scored ? s.scored : s.rows;
    out.count.rows += static_cast<int64_t>(n);
    for (size_t k = 0; k < n; ++k) {
      const bool differs = col.a->digests[ia + k] != col.b->digests[ib + k];
      const bool bad_a = col.a->non_finite[ia + k], bad_b = col.b->non_finite[ib + k];
      if (!differs && !bad_a && !bad_b) continue;
      out.count.differing += differs;
      out.count.non_finite_a += bad_a;
      out.count.non_finite_b += bad_b;
      const size_t row = scored ? static_cast<size_t>(a.scored[ia + k]) : ia + k;
      out.lowest_pos = std::min<int64_t>(out.lowest_pos, a.rows[row].pos);
      if (!out.first) out.first = difference_at(a, col, s, k);
      if (col.a->width != 1) continue;  // no values behind these digests
      const Difference d = difference_at(a, col, s, k);
      if (!d.is_value || d.non_finite) continue;
      const double delta = std::fabs(static_cast<double>(d.value_a) - d.value_b);
      if (delta > largest) {
        largest = delta;
        out.largest = d;
      }
    }
  }
  return out;
}

// The lag at which a column's rows agree although they differ where they stand: B[i] is A[i + lag].
// 0 if there is none.
int shift_of(const ColumnPair& col, const std::vector<SeqPair>& pairs) {
  constexpr int kMaxLag = 8;
  for (int size = 1; size <= kMaxLag; ++size) {
    for (const int lag : {size, -size}) {
      int64_t n = 0, equal = 0;
      for (const SeqPair& s : pairs) {
        for (size_t k = 0; k + static_cast<size_t>(size) < s.scored; ++k) {
          const size_t later = k + static_cast<size_t>(size);
          equal += col.a->digests[s.scored_a + (lag > 0 ? later : k)] ==
                   col.b->digests[s.scored_b + (lag > 0 ? k : later)];
          ++n;
        }
      }
      if (n >= 3 && equal * 10 >= n * 9) return lag;
    }
  }
  return 0;
}

std::string place(const Difference& d) {
  return d.boundary + ", row " + in_quotes(d.id) + ", position " + std::to_string(d.pos);
}

std::string drift_text(const Difference& d, const BoundaryCount& count, size_t before) {
  const std::string agree = before == 0   ? "it is the first boundary compared"
                            : before == 1 ? "the one boundary before it agrees"
                                          : "the " + grouped(static_cast<int64_t>(before)) +
                                                " boundaries before it agree";
  if (d.non_finite) {
    const bool a = count.non_finite_a > 0, b = count.non_finite_b > 0;
    return "inf or NaN at " + place(d) + ", in " + (a && b ? "both" : a ? "A" : "B") + "; " + agree;
  }
  return "first difference at " + place(d) + "; " + agree;
}

}  // namespace

Comparison compare_traces(const TraceView& a, const TraceView& b, const CompareOptions& options) {
  Comparison c;
  c.kind = "trace";
  c.name_a = "A";
  c.name_b = "B";
  Findings findings;
  for (const TraceView* v : {&a, &b}) {
    if (const Status sound = check_trace(*v, v == &a ? "A" : "B"); !sound) {
      findings.add(sound.error().code, sound.error().asked + ": " + sound.error().reasons[0]);
    }
  }
  if (findings.has(Code::kBrokenData)) {
    triage_headers(a.header, b.header, options, c, findings);
    findings.settle(c);
    return c;
  }
  const std::vector<SeqPair> pairs = pair_sequences(a, b, findings);
  const std::vector<ColumnPair> columns = pair_columns(a, b, findings);
  triage_headers(a.header, b.header, options, c, findings);
  c.sequences = static_cast<int64_t>(pairs.size());
  std::string drift;
  for (const ColumnPair& col : columns) {
    if (interrupted()) {
      findings.add(Code::kInterrupted, "interrupted");
      break;
    }
    const ColumnResult r = compare_column(a, col, pairs);
    c.compared += r.count.rows;
    c.differing += r.count.differing;
    if (r.first && !c.first) {
      c.first = r.first;
      drift = drift_text(*r.first, r.count, c.boundaries.size());
      c.hint = r.first->non_finite ? "an overflow or an uninitialised value here; masked keys and "
                                     "padding must be selected away, never multiplied"
                                   : likely_cause(col.a->boundary, r.lowest_pos, a.header.schedule,
                                                  b.header.schedule);
      const int lag = col.a->boundary.tap == Tap::kLogp ? shift_of(col, pairs) : 0;
      if (lag != 0) {
        const std::string size = std::to_string(std::abs(lag));
        c.hint = "the log-probabilities are shifted by " + (size == "1" ? "one" : size) +
                 ": B[i] holds what A[i" + (lag > 0 ? "+" : "−") + size +
                 "] holds; everything before them agrees, so the labels are shifted, not the model";
        c.signatures.push_back("shift");
      }
    }
    if (col.a->boundary.tap == Tap::kLogp) c.largest = r.largest;
    c.boundaries.push_back(r.count);
  }
  conclude(c, drift, findings);
  findings.settle(c);
  if (c.code == Code::kEqual) {
    c.finding = "all " + grouped(static_cast<int64_t>(c.boundaries.size())) + " boundaries of " +
                grouped(c.sequences) + (c.sequences == 1 ? " row" : " rows") +
                " have equal bits (" + grouped(c.compared) + " row digests)";
  }
  return c;
}

}  // namespace sb
