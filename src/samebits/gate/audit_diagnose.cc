#include "samebits/gate/audit_diagnose.h"

#include <algorithm>
#include <cmath>

#include "samebits/base/bits.h"
#include "samebits/chain/fault_reach.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

constexpr int64_t kEnoughToTell = 8;  // tokens of a row before a likeness is told

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
      out.emplace_back(
          usual, ", which the log does not state; --temperature " + shortest(usual) + " audits it");
    }
  }
  return out;
}

}  // namespace

RunOptions Rescorer::run_of(Profile profile, const Semantics& semantics) const {
  RunOptions run = engine_.run_options({});
  run.session.profile = profile;
  run.session.temperature = semantics.temperature;
  run.session.suppress = semantics.suppress;
  run.interrupted = options_.interrupted;
  return run;
}

Result<std::vector<float>> Rescorer::score(const TokenRow& row, const RunOptions& run) {
  const std::vector<Sequence> rows = {{row.id, row.tokens, row.prompt_len}};
  SB_DO(check_faults_act(engine_.model->arch, rows, run));
  SB_TRY(result, engine_.score(rows, run));
  done_ += static_cast<int64_t>(row.tokens.size());
  if (options_.progress) options_.progress(std::min(done_, total_), total_);
  return std::move(result.logprobs[0]);
}

Result<Diagnosis> diagnose(const Engine& engine, Rescorer& rescorer, const Suspect& suspect) {
  const std::string first = "row " + in_quotes(suspect.row.id) + " of the log ";
  Diagnosis near;
  const double before = distance(suspect.row, suspect.rescored).mean();
  double nearest = 0.2 * before;  // must explain most of the difference
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
    near = {Code::kSemanticsDiffer, first + "is near temperature " + shortest(t) + " (mean |Δ| " +
                                        shortest(static_cast<float>(d.mean())) + " instead of " +
                                        shortest(static_cast<float>(before)) + ")" + why};
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

}  // namespace sb
