#include "samebits/gate/verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "samebits/base/bits.h"
#include "samebits/base/rng.h"
#include "samebits/chain/fault_reach.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/record_gate.h"
#include "samebits/gate/scenarios.h"
#include "samebits/gate/score_run.h"

namespace sb {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs scenarios against references that are computed once: each row alone, the training schedule,
// no faults.
class Matrix {
 public:
  Matrix(Engine& engine, const VerifyOptions& options, std::vector<Sequence> rows,
         std::vector<Sequence> long_rows)
      : engine_(engine),
        options_(options),
        rows_(std::move(rows)),
        long_rows_(std::move(long_rows)) {}

  Result<ScenarioResult> run(const Scenario& scenario);
  // Every planted fault must be able to act in one of the scenarios.
  Status check_faults(const std::vector<Scenario>& scenarios) const;
  struct Reference {
    std::vector<std::string> ids;
    Meaning meaning;
    Logprobs logprobs;
    std::optional<Trace> trace;
  };
  Result<const Reference*> reference(const std::vector<Sequence>& rows, const Meaning& meaning,
                                     bool traced);
  const std::vector<Sequence>& rows() const { return rows_; }

 private:
  RunOptions clean_alone(const Meaning& meaning) const {
    RunOptions run = engine_.run_options({});
    run.packed = false;
    run.session.faults.clear();
    run.session.temperature = meaning.temperature;
    run.session.suppress = meaning.suppress;
    run.interrupted = options_.interrupted;
    return run;
  }

  RunOptions arm(const Scenario& s) const {
    RunOptions run = engine_.run_options(s.schedule);
    run.packed = s.packed;
    run.padding_rows = s.padding_rows;
    run.pad_fill = s.pad_fill;
    run.prefix = s.prefix;
    run.join_every = s.join_every;
    run.session.cache = s.cache;
    run.session.temperature = s.meaning.temperature;
    run.session.suppress = s.meaning.suppress;
    run.interrupted = options_.interrupted;
    return run;
  }

  Result<RunResult> score(const Scenario& s, const std::vector<Sequence>& rows,
                          const RunOptions& run) {
    if (s.threads == 0) return engine_.score(rows, run);
    ThreadPool pool(s.threads);
    return score_rows_ranks(*engine_.model, *engine_.device, pool, engine_.options.tp, rows, run);
  }

  // The scenario's rows: themselves, or in another order among strangers (which are not compared).
  std::vector<Sequence> company(const Scenario& s, const std::vector<Sequence>& rows) const;
  Status check_run_records(const std::vector<Record>& records, const Scenario& s, bool sampled);
  Status compare_boundaries(const Scenario& s, const std::vector<Sequence>& all, const Trace& trace,
                            ScenarioResult& out);

  Engine& engine_;
  const VerifyOptions& options_;
  std::vector<Sequence> rows_, long_rows_;
  std::vector<std::unique_ptr<Reference>> references_;
};

std::vector<int32_t> random_tokens(const Architecture& arch, int64_t n, uint64_t stream) {
  CounterRng rng(0x5eed, stream);
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (auto& t : tokens) {
    t = 8 + static_cast<int32_t>(rng.below(static_cast<uint32_t>(arch.vocab - 9)));
  }
  return tokens;
}

std::vector<Sequence> Matrix::company(const Scenario& s, const std::vector<Sequence>& rows) const {
  if (!s.other_neighbours) return rows;
  std::vector<Sequence> all;
  uint64_t stream = 1000;
  for (auto it = rows.rbegin(); it != rows.rend(); ++it) {
    const int64_t n = 3 + static_cast<int64_t>(stream % 7) * 9;
    Sequence stranger{"stranger " + std::to_string(stream),
                      random_tokens(engine_.model->arch, n, stream), 1};
    for (auto& id : stranger.tokens) {  // a suppressed id has no log-probability
      while (std::binary_search(s.meaning.suppress.begin(), s.meaning.suppress.end(), id)) {
        id = static_cast<int32_t>((id + 1) % engine_.model->arch.vocab);
      }
    }
    all.push_back(std::move(stranger));
    ++stream;
    all.push_back(*it);
  }
  return all;
}

Result<const Matrix::Reference*> Matrix::reference(const std::vector<Sequence>& rows,
                                                   const Meaning& meaning, bool traced) {
  std::vector<std::string> ids;
  for (const auto& r : rows) ids.push_back(r.id);
  for (const auto& known : references_) {
    if (known->ids == ids && known->meaning == meaning && (known->trace || !traced)) {
      return known.get();
    }
  }
  Parallel alone;
  RunOptions run = clean_alone(meaning);
  run.trace = traced;
  SB_TRY(result, score_rows(*engine_.model, *engine_.device, *engine_.pool, alone, rows, run));
  references_.push_back(std::make_unique<Reference>(
      Reference{std::move(ids), meaning, std::move(result.logprobs), std::move(result.trace)}));
  return references_.back().get();
}

Status Matrix::check_run_records(const std::vector<Record>& records, const Scenario& s,
                                 bool sampled) {
  RecordExpectation expect;
  expect.profile = engine_.options.profile;
  expect.backend = engine_.options.backend;
  expect.tp = engine_.options.tp;
  expect.paged = s.schedule.kind != ScheduleKind::kTrain;
  expect.sampled = sampled;
  return check_sealed(seal_records(records), engine_.model->arch, expect);
}

// First boundary at which a run's trace leaves the reference's, if any.
Status Matrix::compare_boundaries(const Scenario& s, const std::vector<Sequence>& all,
                                  const Trace& trace, ScenarioResult& out) {
  SB_TRY(want, reference(all, s.meaning, /*traced=*/true));
  const auto digests = token_digests(all);
  const Comparison c =
      compare_traces(view_of(*want->trace, engine_.header(clean_alone(s.meaning)), digests),
                     view_of(trace, engine_.header(arm(s)), digests));
  out.digests += c.compared;
  if (c.code == Code::kEqual) return {};
  out.code = worst(out.code, c.code);
  out.finding = c.finding;
  if (!c.first) return {};
  out.boundary = c.first->boundary;
  out.row = c.first->id;
  out.position = c.first->pos;
  out.finding =
      c.first->boundary + ", row " + c.first->id + ", position " + std::to_string(c.first->pos);
  return {};
}

Result<ScenarioResult> Matrix::run(const Scenario& s) {
  const auto start = Clock::now();
  ScenarioResult out{.group = s.group, .name = s.name};
  std::vector<Sequence> rows = s.long_row ? long_rows_ : rows_;
  Logprobs got;
  std::vector<Sequence> all;
  std::vector<Record> records;
  if (s.generate) {
    RolloutOptions rollout;
    rollout.session = arm(s).session;
    rollout.max_new = 40;
    rollout.seed = 3;
    rollout.join_every = s.join_every;
    rollout.interrupted = options_.interrupted;
    std::vector<Sequence> prompts = rows;
    for (auto& p : prompts) p.tokens.resize(static_cast<size_t>(p.prompt_len));
    SB_TRY(drawn, rollout_ranks(*engine_.model, *engine_.device, *engine_.pool, engine_.options.tp,
                                prompts, rollout));
    rows = drawn.sequences;
    for (auto& r : rows) r.id = "drawn " + r.id;
    all = rows;
    got = std::move(drawn.logprobs);
    records = std::move(drawn.records);
  } else {
    all = company(s, rows);
    RunOptions run = arm(s);
    run.trace = s.traced;
    SB_TRY(result, score(s, all, run));
    if (result.trace) SB_DO(compare_boundaries(s, all, *result.trace, out));
    for (const auto& r : rows) {
      const auto at = std::find_if(all.begin(), all.end(), [&](auto& x) { return x.id == r.id; });
      got.push_back(result.logprobs[static_cast<size_t>(at - all.begin())]);
    }
    records = std::move(result.records);
  }
  SB_TRY(want, reference(rows, s.meaning, /*traced=*/false));
  bool finite = true;
  for (size_t i = 0; i < got.size(); ++i) {
    for (size_t j = 0; j < got[i].size(); ++j) {
      ++out.compared;
      out.differing += float_bits(got[i][j]) != float_bits(want->logprobs[i][j]);
      finite &= std::isfinite(got[i][j]) && std::isfinite(want->logprobs[i][j]);
    }
  }
  if (auto trusted = check_run_records(records, s, s.generate); !trusted) {
    out.code = worst(out.code, trusted.error().code);
    out.finding = trusted.error().asked + ": " + trusted.error().reasons.front();
  } else if (out.compared == 0) {
    out.code = Code::kBrokenData;
    out.finding = "nothing was compared";
  } else if (out.differing > 0 || !finite) {
    out.code = worst(out.code, Code::kDrift);
    if (out.boundary.empty()) {
      RunOptions again = arm(s);
      again.trace = true;
      SB_TRY(result, score(s, all, again));
      SB_DO(compare_boundaries(s, all, *result.trace, out));
      if (out.finding.empty()) {
        out.finding = finite ? "log-probabilities, but no boundary when run again"
                             : "a log-probability is not finite";
      }
    }
  }
  out.seconds = seconds_since(start);
  return out;
}

Status Matrix::check_faults(const std::vector<Scenario>& scenarios) const {
  for (const Fault& fault : engine_.faults) {
    std::optional<Refusal> no;
    bool acts = false;
    for (const Scenario& s : scenarios) {
      if (s.generate) continue;  // decodes as another scenario does
      const auto can = check_fault_acts(fault, engine_.model->arch,
                                        company(s, s.long_row ? long_rows_ : rows_), arm(s));
      acts |= can.has_value();
      // What a scenario lacks says more than a schedule it does not act in.
      if (!can && (!no || no->code == Code::kUsage)) no = can.error();
    }
    if (!acts && no) return tl::unexpected(*no);
  }
  return {};
}

// An id that a row scores cannot be suppressed; other ids take its place.
void spare_ids_of(const std::vector<Sequence>& rows, int64_t vocab,
                  std::vector<int32_t>& suppress) {
  std::set<int32_t> used, chosen;
  for (const auto& r : rows) used.insert(r.tokens.begin(), r.tokens.end());
  for (const int32_t id : suppress) {
    if (!used.contains(id)) chosen.insert(id);
  }
  for (int32_t id = 0; chosen.size() < suppress.size() && id < vocab; ++id) {
    if (!used.contains(id)) chosen.insert(id);
  }
  suppress.assign(chosen.begin(), chosen.end());
}

}  // namespace

std::vector<Sequence> verify_rows(const Architecture& arch, int64_t long_row) {
  std::vector<Sequence> rows;
  const std::pair<int64_t, int> shapes[] = {{5, 1}, {33, 4}, {64, 9}, {65, 16}, {200, 20}};
  for (const auto& [tokens, prompt] : shapes) {
    rows.push_back({"r" + std::to_string(tokens),
                    random_tokens(arch, tokens, static_cast<uint64_t>(tokens)), prompt});
  }
  if (long_row > 0) {
    rows.push_back({"r" + std::to_string(long_row),
                    random_tokens(arch, long_row, static_cast<uint64_t>(long_row)), 1});
  }
  return rows;
}

Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options) {
  const auto start = Clock::now();
  const Architecture& arch = engine.model->arch;
  if (options.suite != "all" && options.suite != "hybrid-attention") {
    return refuse(Code::kUsage, "verify suite " + options.suite, "there is no suite of this name",
                  "all or hybrid-attention");
  }
  // Long enough to leave the window and a segment.
  const int64_t long_tokens =
      options.rows.empty() ? (arch.window >= 1024 ? arch.window + 76 : 300) : 0;
  std::vector<Sequence> rows = options.rows.empty() ? verify_rows(arch, 0) : options.rows;
  std::vector<Sequence> long_rows;
  if (long_tokens > 0) long_rows.push_back(verify_rows(arch, long_tokens).back());

  Matrix matrix(engine, options, rows, long_rows);
  VerifyReport report;
  RunOptions plain = engine.run_options({});
  plain.session.temperature = options.meaning.temperature;
  plain.session.suppress = options.meaning.suppress;
  report.header = engine.header(plain);
  for (const auto& fault : engine.faults) report.planted.push_back(fault_info(fault.kind).name);
  std::vector<Scenario> scenarios = all_scenarios(arch, long_tokens);
  if (options.suite == "hybrid-attention") {
    std::erase_if(scenarios, [](const Scenario& s) { return !s.hybrid; });
  }
  for (auto& s : scenarios) {
    if (s.meaning == Meaning{}) {
      s.meaning = options.meaning;
    } else {
      spare_ids_of(rows, arch.vocab, s.meaning.suppress);
    }
  }
  SB_DO(matrix.check_faults(scenarios));
  SB_TRY(reference, matrix.reference(matrix.rows(), options.meaning, /*traced=*/true));
  const auto probed = std::max_element(rows.begin(), rows.end(), [](auto& a, auto& b) {
    return std::min<int64_t>(a.size(), 65) < std::min<int64_t>(b.size(), 65);
  });  // the first row of 65 tokens or more, else the longest
  SB_TRY(spread, measure_spread(engine, *probed, reference->logprobs));
  report.spread = spread;
  int64_t done = 0;
  for (const auto& s : scenarios) {
    if (options.interrupted && options.interrupted()) {
      return refuse(Code::kInterrupted, "verify", "interrupted");
    }
    if (options.progress) {
      options.progress(s.group + ": " + s.name, done++, static_cast<int64_t>(scenarios.size()));
    }
    SB_TRY(result, matrix.run(s));
    report.compared += result.compared;
    report.differing += result.differing;
    report.digests += result.digests;
    report.code = worst(report.code, result.code);
    report.scenarios.push_back(std::move(result));
  }
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace sb
