#include "samebits/gate/audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "samebits/base/bits.h"
#include "samebits/base/rng.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/score_run.h"

namespace sb {
namespace {

constexpr int64_t kEnoughToTell = 8;  // tokens of a row before a likeness is told

bool has_unmasked(const TokenRow& row) {
  return !row.mask || std::find(row.mask->begin(), row.mask->end(), 1) != row.mask->end();
}

// Rescores rows one at a time and keeps count of tokens over all of them.
class Rescorer {
 public:
  Rescorer(Engine& engine, const AuditOptions& options, int64_t total)
      : engine_(engine), options_(options), total_(total) {}

  RunOptions run_of(Profile profile, const Semantics& semantics) const {
    RunOptions run = engine_.run_options({});
    run.session.profile = profile;
    run.session.temperature = semantics.temperature;
    run.session.suppress = semantics.suppress;
    run.interrupted = options_.interrupted;
    return run;
  }

  Result<std::vector<float>> score(const TokenRow& row, const RunOptions& run) {
    SB_TRY(result, engine_.score({{row.id, row.tokens, row.prompt_len}}, run));
    done_ += static_cast<int64_t>(row.tokens.size());
    if (options_.progress) options_.progress(std::min(done_, total_), total_);
    return std::move(result.logprobs[0]);
  }

 private:
  Engine& engine_;
  const AuditOptions& options_;
  int64_t total_, done_ = 0;
};

// How far a row's log is from rescored values.
struct Distance {
  int64_t n = 0, differing = 0;
  double sum = 0;
  bool equal() const { return n > 0 && differing == 0; }
  double mean() const { return n ? sum / static_cast<double>(n) : 0; }
};
Distance distance(const TokenRow& row, const std::vector<float>& got) {
  Distance d;
  for (size_t i = 0; i < got.size(); ++i) {
    const float x = (*row.logprobs)[i];
    if ((row.mask && (*row.mask)[i] == 0) || !std::isfinite(x)) continue;
    ++d.n;
    d.differing += float_bits(x) != float_bits(got[i]);
    d.sum += std::fabs(static_cast<double>(x) - got[i]);
  }
  return d;
}

struct Diagnosis {
  Code code = Code::kEqual;
  std::string text;
};

// A row whose bits are not those of what it states.
struct Suspect {
  const TokenRow& row;
  const Semantics& semantics;
  bool temperature_stated;
  double mean;  // mean |Δ| as audited
};

// Temperatures that a log may mean by saying none, and what is likely behind each.
std::vector<std::pair<float, std::string>> likely_temperatures(const Suspect& s) {
  const float t = s.semantics.temperature;
  std::vector<std::pair<float, std::string>> out;
  if (t != 1) {
    out.emplace_back(1.0f, ": its log-probabilities were taken before the temperature " +
                               shortest(t) + " was applied");
    out.emplace_back(t * t, ": the temperature " + shortest(t) + " was applied twice");
  }
  if (!s.temperature_stated) {
    for (const float usual : {0.7f, 0.6f, 0.8f, 0.9f, 0.5f, 1.2f}) {
      out.emplace_back(usual, ", which the log does not state; --temperature " + shortest(usual) +
                                  " audits it");
    }
  }
  return out;
}

// What the engine did instead, when that gives the row's bits, or comes near them.
Result<Diagnosis> diagnose(const Engine& engine, Rescorer& rescorer, const Suspect& suspect) {
  const std::string first = "row " + in_quotes(suspect.row.id) + " of the log ";
  Diagnosis near;
  double nearest = 0.2 * suspect.mean;  // must explain most of the difference
  for (const auto& [t, why] : likely_temperatures(suspect)) {
    Semantics s = suspect.semantics;
    s.temperature = t;
    SB_TRY(got, rescorer.score(suspect.row, rescorer.run_of(engine.profile, s)));
    const Distance d = distance(suspect.row, got);
    if (d.equal()) {
      return Diagnosis{Code::kSemanticsDiffer,
                       first + "has the bits of temperature " + shortest(t) + why};
    }
    if (d.n < kEnoughToTell || d.mean() >= nearest) continue;
    nearest = d.mean();
    near = {Code::kSemanticsDiffer,
            first + "is near temperature " + shortest(t) + " (mean |Δ| " +
                shortest(static_cast<float>(d.mean())) + " instead of " +
                shortest(static_cast<float>(suspect.mean)) + ")" + why};
  }
  if (near.code != Code::kEqual) return near;
  for (const Profile p : kProfiles) {
    if (p == engine.profile) continue;
    SB_TRY(got, rescorer.score(suspect.row, rescorer.run_of(p, suspect.semantics)));
    if (!distance(suspect.row, got).equal()) continue;
    const std::string name = profile_name(p);
    return Diagnosis{Code::kNotComparable, first + "has the bits of profile " + name + ", not of " +
                                               profile_name(engine.profile) + "; --profile " +
                                               name + " audits it"};
  }
  return Diagnosis{};
}

std::string drift_text(const Comparison& c) {
  const Difference& d = *c.first;
  return grouped(c.differing) + " of " + grouped(c.compared) +
         " log-probabilities differ, first in row " + in_quotes(d.id) + " at token " +
         std::to_string(d.pos) + ": the log says " + shortest(d.value_a) + " (" +
         bits_hex(d.value_a) + "), rescored it is " + shortest(d.value_b) + " (" +
         bits_hex(d.value_b) + "), " + grouped(d.ulp) + " ulp apart";
}

}  // namespace

std::vector<int64_t> draw_rows(int64_t n, int64_t count, uint64_t seed) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  count = std::min(count, n);
  CounterRng rng(seed, static_cast<uint64_t>(n));
  for (int64_t i = 0; i < count; ++i) {  // the first steps of a Fisher–Yates shuffle
    const int64_t j = i + rng.below(static_cast<uint32_t>(n - i));
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(j)]);
  }
  all.resize(static_cast<size_t>(count));
  std::sort(all.begin(), all.end());
  return all;
}

Status check_audit_header(const RunHeader& header, const Engine& engine, const std::string& log) {
  const RunHeader here = engine.header(engine.run_options({}));
  const auto differs = [&](Code code, const char* what, const std::string& theirs,
                           const std::string& ours, std::string remedy) {
    return refuse(code, "audit " + log,
                  std::string("the ") + what + " of the log are " + theirs + ", here they are " +
                      ours,
                  std::move(remedy));
  };
  if (header.profile != here.profile) {
    return differs(Code::kNotComparable, "profile's matrix steps", header.profile, here.profile,
                   "leave --profile out; the log states its own");
  }
  if (header.contracts != here.contracts) {
    return differs(Code::kNotComparable, "contracts", header.contracts, here.contracts,
                   "the version of samebits that wrote the log");
  }
  if (header.weights != here.weights) {
    return differs(Code::kWeightsDiffer, "weights", header.weights, here.weights,
                   "the checkpoint that the rollout ran");
  }
  if (header.model != here.model) {
    return differs(Code::kSemanticsDiffer, "model's settings", header.model, here.model,
                   "the config.json that the rollout ran");
  }
  return {};
}

Result<AuditReport> audit(Engine& engine, const TokenLog& log, const std::string& log_name,
                          const std::string& model, const AuditOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  AuditReport report;
  report.log = log_name;
  report.model = model;
  report.seed = options.seed;
  report.log_rows = static_cast<int64_t>(log.rows.size());
  if (options.sample && *options.sample < 1) {
    return refuse(Code::kUsage, "audit " + std::to_string(*options.sample) + " rows",
                  "nothing would be compared", "--sample 8, or --sample all");
  }
  std::vector<int64_t> candidates;
  for (int64_t i = 0; i < report.log_rows; ++i) {
    const TokenRow& row = log.rows[static_cast<size_t>(i)];
    if (!row.logprobs) {
      return refuse(Code::kBrokenData, "audit " + log_name,
                    "row " + in_quotes(row.id) + " holds no log-probabilities",
                    "--key logprobs=NAME when the log calls them otherwise");
    }
    if (has_unmasked(row)) candidates.push_back(i);
  }
  const auto n = static_cast<int64_t>(candidates.size());
  for (const int64_t k : draw_rows(n, options.sample.value_or(n), options.seed)) {
    report.drawn.push_back(candidates[static_cast<size_t>(k)]);
  }
  if (n < report.log_rows) {
    report.notes.push_back(grouped(report.log_rows - n) +
                           " rows of the log are masked as a whole and not drawn");
  }

  int64_t tokens = 0;
  for (const int64_t i : report.drawn) {
    tokens += static_cast<int64_t>(log.rows[static_cast<size_t>(i)].tokens.size());
  }
  Rescorer rescorer(engine, options, tokens);
  TokenLog drawn{.header = log.header, .rows = {}};
  ScoreSide rescored{.name = model + ", rescored", .header = {}, .external = false, .rows = {}};
  std::vector<Semantics> meanings;
  std::vector<bool> stated;  // temperature, by the row or the command line
  for (const int64_t i : report.drawn) {
    TokenRow row = log.rows[static_cast<size_t>(i)];
    if (log.header && !row.temperature) row.temperature = log.header->temperature;
    if (log.header && !row.suppress) row.suppress = log.header->suppress;
    stated.push_back(row.temperature || options.temperature);
    SB_TRY(s, agree_on_semantics({row}, engine.model->arch, options.temperature, options.suppress));
    const RunOptions run = rescorer.run_of(engine.profile, s);
    SB_TRY(logprobs, rescorer.score(row, run));
    if (rescored.rows.empty()) rescored.header = engine.header(run);
    row.temperature = s.temperature;
    row.suppress = s.suppress;
    rescored.rows.push_back({{row.id, token_digest(row.tokens), row.prompt_len, logprobs},
                             row.tokens,
                             {},
                             s.temperature,
                             s.suppress});
    report.temperatures.push_back(s.temperature);
    meanings.push_back(std::move(s));
    drawn.rows.push_back(std::move(row));
  }
  if (!log.header) {
    report.notes.push_back(
        "the log states no profile, weights or model; profile " + rescored.header.profile +
        " was run (--profile) on the checkpoint given");
  }
  if (std::find(stated.begin(), stated.end(), false) != stated.end()) {
    report.notes.push_back("not every row states its temperature; 1 was used (--temperature)");
  }

  report.comparison = compare_scores(score_side(drawn, log_name), rescored);
  Comparison& c = report.comparison;
  SB_ASSERT(c.rows.size() == drawn.rows.size(), "a drawn row is compared with itself");
  // Said above in the words of an audit.
  std::erase_if(c.notes, [](const auto& note) { return note.starts_with("A is an external log"); });
  report.code = c.code;
  report.finding = c.finding;
  if (c.code == Code::kEqual) {
    report.finding = "all " + grouped(c.compared) + " log-probabilities of " +
                     grouped(c.sequences) + (c.sequences == 1 ? " row" : " rows") +
                     " drawn from " + grouped(report.log_rows) + " have the rescored bits";
  } else if (c.first) {
    if (c.code == Code::kDrift) report.finding = drift_text(c);
    for (size_t i = 0; i < c.rows.size(); ++i) {
      if (c.rows[i].differing * 2 <= c.rows[i].compared) continue;
      const Suspect suspect{drawn.rows[i], meanings[i], stated[i],
                            distance(drawn.rows[i], rescored.rows[i].score.logprobs).mean()};
      SB_TRY(d, diagnose(engine, rescorer, suspect));
      if (d.code != Code::kEqual && worst(report.code, d.code) == d.code) {
        if (c.code == Code::kDrift) report.notes.push_back(report.finding);
        report.code = d.code;
        report.finding = d.text;
      }
      break;  // one row tells
    }
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace sb
