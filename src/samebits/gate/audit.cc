#include "samebits/gate/audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "samebits/base/bits.h"
#include "samebits/base/rng.h"
#include "samebits/gate/audit_diagnose.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

bool has_unmasked(const TokenRow& row) {
  return !row.mask || std::find(row.mask->begin(), row.mask->end(), 1) != row.mask->end();
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
    return refuse(
        code, "audit " + log,
        std::string("the ") + what + " of the log are " + theirs + ", here they are " + ours,
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
    report.notes.push_back("the log states no profile, weights or model; profile " +
                           rescored.header.profile +
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
                     grouped(c.sequences) + (c.sequences == 1 ? " row" : " rows") + " drawn from " +
                     grouped(report.log_rows) + " have the rescored bits";
  } else if (c.first) {
    if (c.code == Code::kDrift) report.finding = drift_text(c);
    for (size_t i = 0; i < c.rows.size(); ++i) {
      if (c.rows[i].differing * 2 <= c.rows[i].compared) continue;
      SB_TRY(d, diagnose(engine, rescorer,
                         {drawn.rows[i], meanings[i], stated[i], rescored.rows[i].score.logprobs}));
      if (d.code != Code::kEqual && worst(report.code, d.code) == d.code) {
        if (c.code == Code::kDrift) report.notes.push_back(report.finding);
        report.code = d.code;
        report.finding = d.text;
      }
      break;  // one row tells
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace sb
