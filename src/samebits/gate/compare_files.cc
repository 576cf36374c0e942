// What a file holds is recognised by content: a trace, a score file, or token rows with
// log-probabilities (a rollout, or the log of another engine).
#include <cmath>
#include <variant>

#include "samebits/base/bits.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/json_line.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

using Side = std::variant<ScoreSide, TraceFile>;

bool is_score_line(std::string_view text) {
  Lines lines{.rest = text, .line = {}};
  if (!lines.next()) return false;
  const auto json = parse_json_line(lines.line);
  const JsonValue* version = json ? json->find("samebits") : nullptr;
  return version && !(version->is(JsonValue::Kind::kString) && version->text == kRolloutVersion);
}

// The temperature of a side in words of the command line.
Status state_temperature(ScoreSide& side, std::optional<float> given, const char* option) {
  if (!given) return {};
  const std::string asked = std::string(option) + " " + shortest_or_null(*given);
  if (!(std::isfinite(*given) && *given > 0)) {
    return refuse(Code::kUsage, asked, "a temperature is finite and above 0");
  }
  const auto differs = [&](float stated) { return float_bits(stated) != float_bits(*given); };
  const auto contradicts = [&](float stated, const std::string& who) {
    return refuse(Code::kSemanticsDiffer, asked,
                  side.name + ": " + who + " states temperature " + shortest(stated),
                  std::string("leave ") + option + " out");
  };
  if (!side.external && differs(side.header.temperature)) {
    return contradicts(side.header.temperature, "its header");
  }
  for (auto& row : side.rows) {
    if (row.temperature && differs(*row.temperature)) {
      return contradicts(*row.temperature, "row " + in_quotes(row.score.id));
    }
    row.temperature = given;
  }
  return {};
}

Result<Side> load(const std::string& path, const CompareOptions& options,
                  const TokenRowOptions& side) {
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
  TokenRowOptions rows = options.token_rows;
  rows.need_logprobs = rows.keep_bad_logprobs = true;
  for (const auto& [ours, theirs] : side.keys) rows.keys[ours] = theirs;
  SB_TRY(log, parse_token_log(text, where, kAnyVocab, kAnyPosition, rows));
  return Side(score_side(std::move(log), where));
}

}  // namespace

ScoreSide score_side(ScoreFile file, std::string name) {
  ScoreSide side{
      .name = std::move(name), .header = std::move(file.header), .external = false, .rows = {}};
  for (ScoreRow& row : file.rows) side.rows.push_back({std::move(row), {}, {}, {}, {}});
  return side;
}

ScoreSide score_side(TokenLog log, std::string name) {
  ScoreSide side{.name = std::move(name), .header = {}, .external = !log.header, .rows = {}};
  if (log.header) side.header = std::move(*log.header);
  for (TokenRow& row : log.rows) {
    SB_ASSERT(row.logprobs.has_value(), "a log needs log-probabilities");
    side.rows.push_back(
        {{std::move(row.id), token_digest(row.tokens), row.prompt_len, std::move(*row.logprobs)},
         std::move(row.tokens),
         row.mask ? std::move(*row.mask) : std::vector<uint8_t>{},
         row.temperature,
         std::move(row.suppress)});
  }
  return side;
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
  SB_TRY(a, load(path_a, options, options.token_rows_a));
  SB_TRY(b, load(path_b, options, options.token_rows_b));
  if (a.index() != b.index()) {
    const auto kind = [](const Side& s) { return s.index() == 0 ? "scores" : "a trace"; };
    return refuse(Code::kNotComparable, asked,
                  "A holds " + std::string(kind(a)) + " and B " + kind(b),
                  "two score files, two logs or two traces");
  }
  if (a.index() == 0) {
    ScoreSide &x = std::get<ScoreSide>(a), &y = std::get<ScoreSide>(b);
    SB_DO(state_temperature(x, options.temperature_a, "--temperature-a"));
    SB_DO(state_temperature(y, options.temperature_b, "--temperature-b"));
    return compare_scores(x, y, options);
  }
  if (options.temperature_a || options.temperature_b) {
    return refuse(Code::kUsage, asked, "--temperature-a and -b are for logs; traces state theirs");
  }
  Comparison c = compare_traces(std::get<TraceFile>(a).view, std::get<TraceFile>(b).view, options);
  c.name_a = path_a;
  c.name_b = path_b;
  return c;
}

}  // namespace sb
