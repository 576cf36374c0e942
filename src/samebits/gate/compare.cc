// Triage of two headers, and how several findings become one code.
#include <algorithm>
#include <iterator>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

std::string sides(const std::string& a, const std::string& b) { return "A " + a + ", B " + b; }

std::string ids_text(const std::vector<int32_t>& ids) {
  std::string out = "[";
  for (size_t i = 0; i < ids.size() && i < 8; ++i) {
    if (i) out += ',';
    out += std::to_string(ids[i]);
  }
  return out + (ids.size() > 8 ? ",…]" : "]");
}

}  // namespace

Code worst(Code a, Code b) {
  constexpr Code kOrder[] = {Code::kInterrupted,   Code::kUsage,         Code::kBrokenData,
                             Code::kNotComparable, Code::kWeightsDiffer, Code::kSemanticsDiffer,
                             Code::kRefused,       Code::kEnvironment,   Code::kDrift,
                             Code::kEqual};
  const auto rank = [&](Code c) { return std::find(std::begin(kOrder), std::end(kOrder), c); };
  return rank(a) <= rank(b) ? a : b;
}

bool Findings::has(Code code) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& f) { return f.first == code; });
}

void Findings::settle(Comparison& c) const {
  c.code = Code::kEqual;
  for (const auto& f : all_) c.code = worst(c.code, f.first);
  std::vector<std::string> others;
  bool found = false;
  for (const auto& [code, text] : all_) {
    if (!found && code == c.code) {
      c.finding = text;
      found = true;
    } else {
      others.push_back("also " + std::string(code_name(code)) + ": " + text);
    }
  }
  c.notes.insert(c.notes.begin(), others.begin(), others.end());
}

void triage_headers(const RunHeader& a, const RunHeader& b, const CompareOptions& options,
                    Comparison& c, Findings& findings) {
  c.a = a;
  c.b = b;
  c.comparator = kBitsComparator;
  const bool cross = options.comparator == kCrossProfileComparator;
  if (!cross && !options.comparator.empty() && options.comparator != kBitsComparator) {
    findings.add(Code::kUsage, "unknown comparator " + in_quotes(options.comparator) +
                                   "; there are " + kBitsComparator + " and " +
                                   kCrossProfileComparator);
  }
  if (a.profile.empty() || b.profile.empty()) {
    const char* side = a.profile.empty() && b.profile.empty() ? "A and B are external logs"
                       : a.profile.empty()                    ? "A is an external log"
                                                              : "B is an external log";
    c.notes.push_back(std::string(side) +
                      ": model, weights, contracts and profile are not stated and not checked");
    if (cross) c.notes.push_back("cross-profile.v1 needs two stated profiles; bits.v1 was used");
    return;
  }
  const bool profiles_differ = a.profile != b.profile;
  if (profiles_differ && cross) {
    c.comparator = kCrossProfileComparator;
  } else if (profiles_differ) {
    findings.add(Code::kNotComparable, "the profiles differ: " + sides(a.profile, b.profile) +
                                           "; --comparator cross-profile.v1 measures them");
  } else if (cross) {
    c.notes.push_back("the profiles are the same, so bits.v1 was used");
  }
  // Contracts are the same in every profile, so no comparator excuses a difference.
  if (a.contracts != b.contracts) {
    findings.add(Code::kNotComparable, "the contracts differ: " + sides(a.contracts, b.contracts) +
                                           "; they were run by two versions of samebits");
  }
  if (a.weights != b.weights) {
    findings.add(Code::kWeightsDiffer, "the weights differ: " + sides(a.weights, b.weights));
  }
  if (float_bits(a.temperature) != float_bits(b.temperature)) {
    findings.add(
        Code::kSemanticsDiffer,
        "the temperatures differ: " + sides(shortest(a.temperature), shortest(b.temperature)));
  }
  if (a.suppress != b.suppress) {
    findings.add(Code::kSemanticsDiffer,
                 "the suppressed ids differ: " + sides(ids_text(a.suppress), ids_text(b.suppress)));
  }
  if (a.model != b.model) {
    findings.add(Code::kSemanticsDiffer,
                 "the model configurations differ: " + sides(a.model, b.model));
  }
}

void conclude(const Comparison& c, std::string drift, Findings& findings) {
  if (c.compared == 0) findings.add(Code::kBrokenData, "nothing was compared");
  if (!drift.empty() && c.comparator == kCrossProfileComparator) {
    drift = "profiles " + c.a.profile + " and " + c.b.profile + " measured: " + drift;
  }
  if (!drift.empty()) findings.add(Code::kDrift, std::move(drift));
  if (c.comparator == kCrossProfileComparator && c.differing == 0) {
    findings.add(Code::kNotComparable, "no bits differ, but profiles " + c.a.profile + " and " +
                                           c.b.profile + " are never called equal");
  }
}

std::string counted(int64_t count, const std::string& one, const std::string& many,
                    const std::string& first_id) {
  if (count == 0) return {};
  if (count == 1) return one + ": " + in_quotes(first_id);
  return grouped(count) + " " + many + ", first " + in_quotes(first_id);
}

}  // namespace sb
