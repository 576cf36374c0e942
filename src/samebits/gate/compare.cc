#include "samebits/gate/compare.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "samebits/base/bits.h"
#include "samebits/gate/compare_internal.h"
#include "samebits/gate/json_line.h"
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

// "gemma4.strict.v1:DIGEST" without its digest.
std::string contract_id(const std::string& contracts) {
  return contracts.substr(0, contracts.find(':'));
}

// ---- files ----

using Side = std::variant<ScoreSide, TraceFile>;

bool is_score_line(std::string_view text) {
  Lines lines{.rest = text, .line = {}};
  if (!lines.next()) return false;
  const auto json = parse_json_line(lines.line);
  return json && json->find("samebits");
}

Result<Side> load(const std::string& path, const CompareOptions& options) {
  const bool from_stdin = path == "-";
  const std::string where = from_stdin ? "standard input" : path;
  MappedFile map;
  std::string input;
  if (from_stdin) {
    SB_TRY(text, read_text("-"));
    input = std::move(text);
  } else {
    SB_TRY(opened, MappedFile::open(path));
    map = std::move(opened);
  }
  const std::string_view text = from_stdin ? std::string_view(input) : map.text();
  if (text.empty()) return refuse(Code::kBrokenData, "compare " + where, "the file is empty");
  if (text.starts_with(kTraceMagic.substr(0, 9))) {  // "samebits ": a line of text, never JSON
    SB_TRY(trace, from_stdin ? parse_trace_file(text, where) : read_trace_file(path));
    return Side(std::move(trace));
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') {
    return refuse(Code::kBrokenData, "compare " + where,
                  "it is no trace, no score file and no token rows",
                  "samebits help formats lists what compare reads");
  }
  if (is_score_line(text)) {
    SB_TRY(scores, parse_score_file(text, where));
    return Side(score_side(std::move(scores), where));
  }
  TokenRowOptions rows_options = options.token_rows;
  rows_options.need_logprobs = true;
  SB_TRY(rows, parse_token_rows(text, where, kAnyVocab, kAnyPosition, rows_options));
  return Side(score_side(std::move(rows), where));
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
  const bool same_id = contract_id(a.contracts) == contract_id(b.contracts);
  if (a.contracts != b.contracts) {
    const std::string text = "the contracts differ: " + sides(a.contracts, b.contracts);
    // A contract digest may cover the profile's matrix step; its ID names the same rules.
    if (c.comparator == kCrossProfileComparator && same_id) {
      c.notes.push_back(text);
    } else {
      findings.add(Code::kNotComparable, text);
    }
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

Result<Comparison> compare_files(const std::string& path_a, const std::string& path_b,
                                 const CompareOptions& options) {
  const std::string asked = "compare " + path_a + " with " + path_b;
  if (path_a == "-" && path_b == "-") {
    return refuse(Code::kUsage, asked, "standard input can be one side only");
  }
  if (!options.comparator.empty() && options.comparator != kBitsComparator &&
      options.comparator != kCrossProfileComparator) {
    return refuse(Code::kUsage, asked, "unknown comparator " + in_quotes(options.comparator),
                  std::string(kBitsComparator) + " or " + kCrossProfileComparator);
  }
  SB_TRY(a, load(path_a, options));
  SB_TRY(b, load(path_b, options));
  if (a.index() != b.index()) {
    const auto kind = [](const Side& s) { return s.index() == 0 ? "scores" : "a trace"; };
    return refuse(Code::kNotComparable, asked,
                  "A holds " + std::string(kind(a)) + " and B " + kind(b),
                  "two score files, two logs or two traces");
  }
  if (a.index() == 0)
    return compare_scores(std::get<ScoreSide>(a), std::get<ScoreSide>(b), options);
  Comparison c = compare_traces(std::get<TraceFile>(a).view, std::get<TraceFile>(b).view, options);
  c.name_a = path_a;
  c.name_b = path_b;
  return c;
}

}  // namespace sb
