// Comparing two runs: first whether they may be compared at all, then bit by bit.
//
// Triage, each step with its own code: data sound (6) → ids, rows, tokens, masks, profile,
// contracts (2) → weights (3) → sampling semantics, model configuration (4) → operators (1). All
// steps that can be taken are taken and reported; the code is the worst of them in the order of
// `worst`. Schedule, order of rows in the file, backend and host are free to differ.
//
// The finding is the first difference in causal order (boundary, then sequence, then position);
// the largest is shown beside it. The largest is usually far downstream: a fault of 0.03 % at layer
// 0 can be a factor at layer 58. Nothing compared is 6, part compared is 2: neither ever passes.
// A boundary with an inf or NaN is 1 even when both sides agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebits/base/result.h"
#include "samebits/gate/metrics.h"
#include "samebits/gate/score_file.h"
#include "samebits/gate/token_rows.h"
#include "samebits/gate/trace_file.h"

namespace sb {

// Of several codes, the first in 130, 64, 6, 2, 3, 4, 5, 7, 1, 0.
Code worst(Code a, Code b);

inline constexpr const char* kBitsComparator = "bits.v1";
// Two profiles: counts and |Δ| with provenance. Never "equal": 1 where bits differ, 2 where none
// do.
inline constexpr const char* kCrossProfileComparator = "cross-profile.v1";

struct CompareOptions {
  std::string comparator;                      // "" is bits.v1
  TokenRowOptions token_rows;                  // how external logs name their keys
  TokenRowOptions token_rows_a, token_rows_b;  // the same of one side; only `keys` is used
  // The temperature of a log that does not state it; one that states another is refused (4).
  std::optional<float> temperature_a, temperature_b;
};

// One place where the sides differ (or hold a non-finite value).
struct Difference {
  std::string boundary;  // "layers.3.mlp.down.acc", or "logp" in scores
  int layer = -1;
  std::string id;   // token row
  int64_t pos = 0;  // scores: the scored token's own position; traces: the row's position
  uint64_t bits_a = 0, bits_b = 0;  // row digests, or bits of the element when is_value
  bool is_value = false;  // scores, trace boundaries of one element per row, traces with values
  int64_t column = -1;    // where a trace's values show it: the row's first differing element
  bool is_bf16 = false;   // the element is bf16: bits are 16, ulp counts in bf16
  float value_a = 0, value_b = 0;  // when is_value
  int64_t ulp = 0;                 // when is_value and both are finite
  bool non_finite = false;
};

struct BoundaryCount {
  std::string boundary;
  int64_t rows = 0, differing = 0, non_finite_a = 0, non_finite_b = 0;
};

// One token row of two score files or logs.
struct RowCount {
  std::string id;
  int64_t compared = 0, differing = 0, masked = 0, bad = 0;  // tokens
  double max_abs_diff = 0;
  std::optional<Difference> first;
};

struct Comparison {
  Code code = Code::kEqual;
  std::string finding;             // one sentence: the reason for the code
  std::vector<std::string> notes;  // what else was found, and what could not be checked
  std::string hint;                // likely cause; may be empty
  std::string kind;                // "score" or "trace"
  std::string comparator;
  std::string name_a, name_b;                // file names
  RunHeader a, b;                            // an external log has an empty profile
  int64_t sequences = 0;                     // token rows compared
  int64_t compared = 0, differing = 0;       // logprobs, or row digests over all boundaries
  int64_t masked = 0, masked_rows = 0;       // scored tokens left out by a mask; rows without any
  int64_t bad_a = 0, bad_b = 0;              // log-probabilities that are not finite or positive
  std::optional<Difference> first, largest;  // largest |Δ|; traces: only where values are known
  std::vector<BoundaryCount> boundaries;     // traces, causal order
  std::vector<RowCount> rows;                // scores, in A's order
  std::vector<Metric> metrics;               // scores
  // What the differences look like, for machines: "filler-zeros", "constant-stream", "bad-values",
  // "shift", "constant-bias", "one-sided", "temperature", "bf16-log", "rounded-log".
  std::vector<std::string> signatures;
  bool a_is_train = false;  // which side the metrics call training: B, unless only A's schedule is
};

// What a score file or an external log is compared as.
struct ScoreSide {
  std::string name;
  RunHeader header;
  bool external = false;  // header unknown, except what the rows say
  struct Row {
    ScoreRow score;
    std::vector<int32_t> tokens;  // empty where only their digest is known
    std::vector<uint8_t> mask;    // empty: all scored tokens count
    std::optional<float> temperature;
    std::optional<std::vector<int32_t>> suppress;
  };
  std::vector<Row> rows;
};
ScoreSide score_side(ScoreFile file, std::string name);
ScoreSide score_side(TokenLog log, std::string name);  // rows must have logprobs

Comparison compare_scores(const ScoreSide& a, const ScoreSide& b,
                          const CompareOptions& options = {});
Comparison compare_scores(const ScoreFile& a, const ScoreFile& b,
                          const CompareOptions& options = {});
Comparison compare_traces(const TraceView& a, const TraceView& b,
                          const CompareOptions& options = {});

// Recognises traces, score files and token rows with logprobs by content; "-" is standard input.
Result<Comparison> compare_files(const std::string& path_a, const std::string& path_b,
                                 const CompareOptions& options = {});

// Plausible causes of a first difference, phrased as likely; "" when nothing is known.
// lowest_pos: the smallest differing position of that boundary.
std::string likely_cause(Boundary first, int64_t lowest_pos, const std::string& schedule_a,
                         const std::string& schedule_b);

}  // namespace sb
