// Token rows laid side by side: paired by id in any file order; tokens, prompt and masks must agree
// before a number is looked at, and what rows state about their sampling must too.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

// Where two rows' tokens part, as far as both sides hold tokens and not only their digest.
std::string token_difference(const ScoreSide::Row& a, const ScoreSide::Row& b) {
  if (a.tokens.empty() || b.tokens.empty()) {
    return "; a score file holds a digest of the ids, so the position is not known";
  }
  const size_t n = std::min(a.tokens.size(), b.tokens.size());
  size_t i = 0;
  while (i < n && a.tokens[i] == b.tokens[i]) ++i;
  const auto at = [&](const ScoreSide::Row& r) {
    return i < r.tokens.size() ? std::to_string(r.tokens[i]) : std::string("none");
  };
  return "; there first at token " + std::to_string(i) + ": A " + at(a) + ", B " + at(b) +
         " (was the text tokenised again on one side?)";
}

std::string two(int64_t a, int64_t b) {
  return "; there A " + std::to_string(a) + ", B " + std::to_string(b);
}

bool is_logprob(float x) { return std::isfinite(x) && x <= 0; }

std::vector<Use> use_of(const ScoreSide::Row& a, const ScoreSide::Row& b) {
  const auto& mask = a.mask.empty() ? b.mask : a.mask;
  const auto &x = a.score.logprobs, &y = b.score.logprobs;
  std::vector<Use> use(x.size(), Use::kGood);
  for (size_t i = 0; i < use.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) {
      use[i] = Use::kMasked;  // placeholders may stand there
    } else if (!is_logprob(x[i]) || !is_logprob(y[i])) {
      use[i] = Use::kBad;
    }
  }
  return use;
}

}  // namespace

std::vector<RowPair> pair_rows(const ScoreSide& a, const ScoreSide& b, Findings& findings) {
  std::unordered_map<std::string, const ScoreSide::Row*> by_id;
  for (const auto& row : b.rows) by_id[row.score.id] = &row;
  Tally only_a, only_b, tokens, prompts, lengths, masks;
  std::string first_tokens, first_prompts, first_lengths;
  std::vector<RowPair> pairs;
  for (const auto& row : a.rows) {
    const std::string& id = row.score.id;
    const auto it = by_id.find(id);
    if (it == by_id.end()) {
      only_a.add(id);
      continue;
    }
    const ScoreSide::Row& other = *it->second;
    by_id.erase(it);
    const auto &x = row.score, &y = other.score;
    if (x.tokens != y.tokens) {
      if (tokens.count == 0) first_tokens = token_difference(row, other);
      tokens.add(id);
    } else if (x.prompt_len != y.prompt_len) {
      if (prompts.count == 0) first_prompts = two(x.prompt_len, y.prompt_len);
      prompts.add(id);
    } else if (x.logprobs.size() != y.logprobs.size()) {
      if (lengths.count == 0) {
        first_lengths =
            two(static_cast<int64_t>(x.logprobs.size()), static_cast<int64_t>(y.logprobs.size()));
      }
      lengths.add(id);
    } else if (!row.mask.empty() && !other.mask.empty() && row.mask != other.mask) {
      masks.add(id);
    } else {
      pairs.push_back({&row, &other, use_of(row, other)});
    }
  }
  for (const auto& row : b.rows) {
    if (by_id.count(row.score.id)) only_b.add(row.score.id);
  }
  const auto report = [&](const Tally& t, const char* one, const char* many,
                          const std::string& more = {}) {
    if (t.count) findings.add(Code::kNotComparable, counted(t.count, one, many, t.first) + more);
  };
  report(only_a, "one row is only in A", "rows are only in A");
  report(only_b, "one row is only in B", "rows are only in B");
  report(tokens, "the token ids of one row differ", "rows differ in their token ids", first_tokens);
  report(prompts, "the prompt_len of one row differs", "rows differ in prompt_len", first_prompts);
  report(lengths, "the number of logprobs of one row differs", "rows differ in number of logprobs",
         first_lengths);
  report(masks, "the masks of one row differ", "rows differ in their masks");
  return pairs;
}

void triage_rows(const ScoreSide& a, const ScoreSide& b, const std::vector<RowPair>& pairs,
                 Comparison& c, Findings& findings) {
  const auto temperature = [](const ScoreSide& s, const ScoreSide::Row& r) {
    return r.temperature || s.external ? r.temperature : std::optional<float>(s.header.temperature);
  };
  const auto suppress = [](const ScoreSide& s, const ScoreSide::Row& r) {
    return r.suppress || s.external ? r.suppress : std::optional(s.header.suppress);
  };
  Tally temperatures, suppressed, unstated;
  std::string values;
  for (const RowPair& p : pairs) {
    const auto ta = temperature(a, *p.a), tb = temperature(b, *p.b);
    if (ta && tb && float_bits(*ta) != float_bits(*tb)) {
      if (temperatures.count == 0) values = "A " + shortest(*ta) + ", B " + shortest(*tb) + "; ";
      temperatures.add(p.a->score.id);
    }
    const auto sa = suppress(a, *p.a), sb = suppress(b, *p.b);
    if (!ta || !tb || !sa || !sb) unstated.add(p.a->score.id);
    if (sa && sb && *sa != *sb) suppressed.add(p.a->score.id);
  }
  if (unstated.count) {
    c.notes.push_back(
        "not every row states its temperature and suppressed ids on both sides; what is not stated "
        "is not checked (--temperature-a and --temperature-b state the one)");
  }
  if (temperatures.count) {
    findings.add(Code::kSemanticsDiffer,
                 "the temperatures differ: " + values +
                     counted(temperatures.count, "one row", "rows", temperatures.first));
  }
  if (suppressed.count) {
    findings.add(Code::kSemanticsDiffer,
                 "the suppressed ids differ: " +
                     counted(suppressed.count, "one row", "rows", suppressed.first));
  }
}

}  // namespace sb
