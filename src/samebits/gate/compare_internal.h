// What the score and the trace comparison share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "samebits/gate/compare.h"

namespace sb {

// Everything that was found, in the order of triage.
class Findings {
 public:
  void add(Code code, std::string text) { all_.emplace_back(code, std::move(text)); }
  bool has(Code code) const;
  // The worst code, its first text as the finding, all others in front of the notes.
  void settle(Comparison& c) const;

 private:
  std::vector<std::pair<Code, std::string>> all_;
};

// Profile, contracts, weights, semantics and model of two headers. A header with an empty profile
// is an external log's: what it does not say is noted. Sets c.comparator.
void triage_headers(const RunHeader& a, const RunHeader& b, const CompareOptions& options,
                    Comparison& c, Findings& findings);

// A token row on both sides. use[i] says what becomes of scored token i.
enum class Use : uint8_t { kGood, kMasked, kBad };  // bad: not finite or positive on some side
struct RowPair {
  const ScoreSide::Row* a;
  const ScoreSide::Row* b;
  std::vector<Use> use;
};

// Counts cases of one kind and remembers the first row.
struct Tally {
  int64_t count = 0;
  std::string first;
  void add(const std::string& id) {
    if (count++ == 0) first = id;
  }
};

// Rows that can be laid side by side, in A's order; everything else is a finding (2).
std::vector<RowPair> pair_rows(const ScoreSide& a, const ScoreSide& b, Findings& findings);

// Sampling semantics that logs state per row (4).
void triage_rows(const ScoreSide& a, const ScoreSide& b, const std::vector<RowPair>& pairs,
                 Comparison& c, Findings& findings);

// Good tokens of all rows, in double.
struct Streams {
  std::vector<double> a, b;
};

// Values that are no measurements (6), and what a log did to its numbers (notes).
void find_broken_data(const std::vector<RowPair>& pairs, const Streams& s, Comparison& c,
                      Findings& findings);

// The same, and differences that have another cause than an operator (4).
void find_signatures(const ScoreSide& a, const ScoreSide& b, const std::vector<RowPair>& pairs,
                     Comparison& c, Findings& findings);

// Numbers were compared: adds the finding that follows from c.differing and the comparator.
void conclude(const Comparison& c, std::string drift, Findings& findings);

// "3 rows are only in A, first \"r1\"", with the right number; "" when count is 0.
std::string counted(int64_t count, const std::string& one, const std::string& many,
                    const std::string& first_id);

}  // namespace sb
