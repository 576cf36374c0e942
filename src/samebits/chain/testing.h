// What the tests of chain/ and dist/ share: the tiny checkpoint, made once per process; token rows;
// runs that have to succeed; log-probabilities and traces compared as integers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "samebits/chain/score.h"
#include "samebits/chain/step_builder.h"
#include "samebits/model/presets.h"
#include "samebits/ops/op_testing.h"

namespace sb::chain_testing {

using ops_testing::expect_same_bits;
using ops_testing::ran;
using ops_testing::refused;

// A refusal with this code, one of whose reasons holds `words`.
template <class T>
testing::AssertionResult refused(const Result<T>& result, const std::string& words,
                                 Code code = Code::kRefused) {
  return refused(result ? Status{} : Status(tl::unexpect, result.error()), words, code);
}
template <class T>
testing::AssertionResult ran(const Result<T>& result) {
  return ran(result ? Status{} : Status(tl::unexpect, result.error()));
}

// Folder of the tiny preset; it goes when the process ends.
inline const std::string& tiny_dir() {
  struct Folder {
    std::string path = testing::TempDir() + "sb_chain_" + std::to_string(getpid());
    Folder() {
      NewModel tiny;
      tiny.dir = path;
      tiny.force = true;
      EXPECT_TRUE(ran(write_synthetic(tiny)));
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.path;
}

inline Device& cpu() {
  static const auto device = make_cpu_device();
  return *device;
}

inline Model load_tiny(Device& device) {
  ThreadPool pool(2);
  auto model = load_model(tiny_dir(), device, pool);
  EXPECT_TRUE(ran(model));
  return model ? std::move(*model) : Model{};
}
inline const Model& tiny() {
  static const Model model = load_tiny(cpu());
  return model;
}

// `n` tokens of the tiny vocabulary, other ones for every stream. Ids 0 to 7 do not occur.
inline Sequence row(const std::string& id, int64_t n, int prompt_len, uint64_t stream) {
  CounterRng rng(0xc4a1, stream);
  Sequence s{id, {}, prompt_len};
  for (int64_t i = 0; i < n; ++i) s.tokens.push_back(8 + static_cast<int32_t>(rng.below(2490)));
  return s;
}
// Shorter than the window, just beyond it, and beyond a block of 64 keys.
inline std::vector<Sequence> three_rows() {
  return {row("a", 5, 1, 1), row("b", 33, 9, 2), row("c", 70, 40, 3)};
}

inline RunOptions run_of(const std::string& schedule, bool trace = false) {
  RunOptions run;
  auto parsed = parse_schedule(schedule);
  EXPECT_TRUE(ran(parsed));
  if (parsed) run.schedule = *parsed;
  run.trace = trace;
  return run;
}

inline Result<RunResult> try_score(const std::vector<Sequence>& rows, const RunOptions& run,
                                   int threads = 1, const Model& model = tiny(),
                                   Device& device = cpu()) {
  ThreadPool pool(threads);
  Parallel alone;
  return score_rows(model, device, pool, alone, rows, run);
}
// A run that has to succeed.
inline RunResult score(const std::vector<Sequence>& rows, const RunOptions& run, int threads = 1,
                       const Model& model = tiny(), Device& device = cpu()) {
  auto result = try_score(rows, run, threads, model, device);
  EXPECT_TRUE(ran(result));
  return result ? std::move(*result) : RunResult{};
}

inline bool expect_same(const Logprobs& actual, const Logprobs& expected, const std::string& what) {
  EXPECT_EQ(actual.size(), expected.size()) << what;
  bool same = actual.size() == expected.size() && !actual.empty();
  for (size_t s = 0; same && s < actual.size(); ++s) {
    same = expect_same_bits(actual[s], expected[s], what + ", row " + std::to_string(s));
  }
  return same;
}

// Where two traces first part: the first boundary in causal order, its first row.
struct Difference {
  std::string boundary;
  int seq = -1;
  int64_t pos = -1;
  friend bool operator==(const Difference&, const Difference&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Difference& d) {
    return out << d.boundary << " of row " << d.seq << " at position " << d.pos;
  }
};

inline TraceRow row_of(const Trace& trace, const TraceColumn& column, size_t i) {
  return trace.rows[column.scored ? static_cast<size_t>(trace.scored[i]) : i];
}
inline std::optional<Difference> first_difference(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.columns.size(), b.columns.size());
  for (size_t c = 0; c < a.columns.size(); ++c) {
    const TraceColumn &x = a.columns[c], &y = b.columns[c];
    EXPECT_EQ(x.boundary, y.boundary);
    EXPECT_EQ(x.digests.size(), y.digests.size());
    EXPECT_EQ(x.dtype, y.dtype);
    EXPECT_EQ(x.width, y.width);
    for (size_t i = 0; i < x.digests.size(); ++i) {
      if (x.digests[i] == y.digests[i] && x.non_finite[i] == y.non_finite[i]) continue;
      const TraceRow at = row_of(a, x, i);
      return Difference{boundary_name(x.boundary), at.seq, at.pos};
    }
  }
  return std::nullopt;
}
inline void expect_same(const Trace& actual, const Trace& expected, const std::string& what) {
  const auto difference = first_difference(actual, expected);
  EXPECT_FALSE(difference) << what << ": " << *difference;
}

inline const TraceColumn& column_of(const Trace& trace, const std::string& boundary) {
  for (const TraceColumn& c : trace.columns) {
    if (boundary_name(c.boundary) == boundary) return c;
  }
  ADD_FAILURE() << "no column " << boundary;
  static const TraceColumn none;
  return none;
}

// A Session on the CPU with what it borrows.
struct OpenSession {
  ThreadPool pool{1};
  Parallel alone;
  std::unique_ptr<Session> session;
  explicit OpenSession(const SessionOptions& options = {}, const Model& model = tiny(),
                       Device& device = cpu()) {
    auto made = Session::create(model, device, pool, alone, options);
    EXPECT_TRUE(ran(made));
    if (made) session = std::move(*made);
  }
  Session* operator->() { return session.get(); }

  // Tokens [begin, begin + count) of rows[seq] as one paged step of `handle`: their
  // log-probabilities.
  Result<std::vector<float>> feed(const std::vector<Sequence>& rows, size_t seq,
                                  KvCache::Handle handle, int64_t begin, int64_t count) {
    KvCache& cache = session->cache();
    SB_DO(cache.extend(handle, count));
    SB_DO(cache.check(handle, count));
    StepBuilder builder(rows);
    builder.add(seq, begin, count, 0);
    builder.describe(cache, handle, count);
    SB_TRY(head, session->step(builder.batch(), ScheduleKind::kPrefill));
    cache.trim(handle);
    return head.logp;
  }
};

}  // namespace sb::chain_testing
