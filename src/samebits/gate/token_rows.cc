#include "samebits/gate/token_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "samebits/base/bits.h"
#include "samebits/base/file.h"
#include "samebits/gate/bare_words.h"
#include "samebits/gate/header_json.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/json_line.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

constexpr const char* kKeys[] = {"id",   "tokens",      "prompt_len", "logprobs",
                                 "mask", "temperature", "suppress"};

bool is_known_key(std::string_view key) {
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

// Reads one line into one row; messages carry line and row.
class RowReader {
 public:
  RowReader(const std::string& where, int64_t vocab, int64_t max_position,
            const TokenRowOptions& options)
      : where_(where), vocab_(vocab), max_position_(max_position), options_(options) {}

  // One line as an object.
  Result<JsonValue> parse(std::string_view line, int64_t number) {
    at_ = "line " + std::to_string(number);
    auto parsed = options_.keep_bad_logprobs && has_bare_words(line)
                      ? parse_json_line(quote_bare_words(line))
                      : parse_json_line(line);
    if (!parsed) return bad(parsed.error());
    if (!parsed->is(JsonValue::Kind::kObject)) return bad("not a JSON object");
    return std::move(*parsed);
  }

  // The line that says what the run was, as `rollout` writes it.
  Result<RunHeader> read_header(const JsonValue& json) const {
    const JsonValue& version = *json.find("samebits");
    if (version.is(JsonValue::Kind::kString) && version.text == "score/1") {
      return bad("this is a score file: it holds digests of tokens, not the tokens",
                 "the token rows that were scored, or the log of the rollout");
    }
    if (!version.is(JsonValue::Kind::kString) || version.text != kRolloutVersion) {
      return bad("unknown version " + value_text(version) + "; this program reads " +
                 in_quotes(kRolloutVersion));
    }
    auto header = header_from_json(json);
    if (!header) return bad(header.error());
    return std::move(*header);
  }

  // What a row says again must be what the header says.
  Status check_header(const TokenRow& row, const RunHeader& header) const {
    if (row.temperature && float_bits(*row.temperature) != float_bits(header.temperature)) {
      return bad("the row's temperature is " + shortest(*row.temperature) + ", the header's " +
                 shortest(header.temperature));
    }
    if (row.suppress && *row.suppress != header.suppress) {
      return bad("the row's suppressed ids are not those of the header");
    }
    return {};
  }

  Result<TokenRow> read(const JsonValue& json) {
    TokenRow row;
    SB_DO(read_id(json, row));
    at_ += ", row " + in_quotes(row.id);
    SB_DO(read_tokens(json, row));
    SB_DO(read_prompt_len(json, row));
    if (options_.prompts) {
      keep_extra(json, row);
      return row;
    }
    SB_DO(read_logprobs(json, row));
    SB_DO(read_mask(json, row));
    SB_DO(read_temperature(json, row));
    SB_DO(read_suppress(json, row));
    keep_extra(json, row);
    return row;
  }

  tl::unexpected<Refusal> bad(std::string what, std::string remedy = {}) const {
    return refuse(Code::kBrokenData, "read token rows from " + where_,
                  (at_.empty() ? "" : at_ + ": ") + std::move(what), std::move(remedy));
  }

 private:
  // The name a key has in this file.
  std::string key(const std::string& ours) const {
    const auto it = options_.keys.find(ours);
    return it == options_.keys.end() ? ours : it->second;
  }

  Status read_id(const JsonValue& json, TokenRow& row) {
    const JsonValue* v = json.find(key("id"));
    if (!v) return bad("the key " + in_quotes(key("id")) + " is missing");
    if (v->is(JsonValue::Kind::kInt)) {
      row.id = std::to_string(v->integer);  // many logs number their rows
    } else if (v->is(JsonValue::Kind::kString)) {
      row.id = v->text;
    } else {
      return bad(key("id") + " = " + value_text(*v) + " is neither a string nor an integer");
    }
    if (row.id.empty()) return bad(key("id") + " is empty");
    return {};
  }

  // One token id at a named place.
  Status read_token(const JsonValue& v, const std::string& place, int32_t& out) {
    if (!v.is(JsonValue::Kind::kInt) || v.integer < 0 || v.integer >= vocab_) {
      const std::string limit =
          vocab_ == kAnyVocab ? std::string("int32 ids") : "vocabulary " + std::to_string(vocab_);
      return bad(place + " = " + value_text(v) + " is not an id in 0…" +
                 std::to_string(vocab_ - 1) + " (" + limit + ")");
    }
    out = static_cast<int32_t>(v.integer);
    return {};
  }

  Status read_tokens(const JsonValue& json, TokenRow& row) {
    const std::string name = key("tokens");
    const JsonValue* v = json.find(name);
    if (!v) return bad("the key " + in_quotes(name) + " is missing");
    if (!v->is(JsonValue::Kind::kArray))
      return bad(name + " = " + value_text(*v) + ", not an array");
    const int64_t n = static_cast<int64_t>(v->items.size());
    if (n < (options_.prompts ? 1 : 2)) {
      return bad(name + " holds " + std::to_string(n) +
                 (options_.prompts ? " ids; a prompt needs at least 1"
                                   : " ids; a row needs at least 2, the first is context only"));
    }
    if (n > max_position_) {
      return refuse(Code::kRefused, "read token rows from " + where_,
                    at_ + ": " + name + " holds " + std::to_string(n) +
                        " ids, more than the model's " + std::to_string(max_position_) +
                        " positions",
                    "shorter rows");
    }
    row.tokens.resize(static_cast<size_t>(n));
    for (size_t i = 0; i < v->items.size(); ++i) {
      const JsonValue& item = v->items[i];
      if (item.is(JsonValue::Kind::kInt) && item.integer >= 0 && item.integer < vocab_) {
        row.tokens[i] = static_cast<int32_t>(item.integer);  // the common case makes no strings
      } else {
        SB_DO(read_token(item, name + "[" + std::to_string(i) + "]", row.tokens[i]));
      }
    }
    return {};
  }

  Status read_prompt_len(const JsonValue& json, TokenRow& row) {
    const std::string name = key("prompt_len");
    const JsonValue* v = json.find(name);
    if (!v && options_.prompts) {
      row.prompt_len = static_cast<int>(row.tokens.size());
      return {};
    }
    if (!v) return bad("the key " + in_quotes(name) + " is missing; it has no default");
    const int64_t limit = static_cast<int64_t>(row.tokens.size()) - (options_.prompts ? 0 : 1);
    if (!v->is(JsonValue::Kind::kInt) || v->integer < 1 || v->integer > limit) {
      return bad(name + " = " + value_text(*v) + " is not in 1…" + std::to_string(limit) + " (" +
                 std::to_string(row.tokens.size()) +
                 " tokens, at least one before and one scored)");
    }
    row.prompt_len = static_cast<int>(v->integer);
    if (options_.prompts) row.tokens.resize(static_cast<size_t>(row.prompt_len));
    return {};
  }

  Status read_logprobs(const JsonValue& json, TokenRow& row) {
    const std::string name = key("logprobs");
    const JsonValue* v = json.find(name);
    if (!v || v->is(JsonValue::Kind::kNull)) {
      if (!options_.need_logprobs) return {};
      return bad("the key " + in_quotes(name) + " is missing",
                 "--key logprobs=NAME when the log calls them otherwise");
    }
    if (!v->is(JsonValue::Kind::kArray))
      return bad(name + " = " + value_text(*v) + ", not an array");
    if (static_cast<int64_t>(v->items.size()) != row.num_scored()) {
      return bad(name + " holds " + std::to_string(v->items.size()) + " values; " +
                     std::to_string(row.tokens.size()) + " tokens − prompt_len " +
                     std::to_string(row.prompt_len) + " = " + std::to_string(row.num_scored()) +
                     " are expected",
                 "one log-probability per token behind the prompt, in their order");
    }
    std::vector<float> out(v->items.size());
    std::string first;  // the first bad value; the rest are counted
    int64_t num_bad = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const JsonValue& item = v->items[i];
      std::optional<float> x;
      if (item.is_number() && item.finite) x = item.number;
      if (item.is(JsonValue::Kind::kString)) x = parse_float(item.text);
      if (options_.keep_bad_logprobs && !x) x = not_a_number(item);
      if (x && (options_.keep_bad_logprobs || (std::isfinite(*x) && *x <= 0))) {
        out[i] = *x;
        continue;
      }
      if (num_bad++ == 0) {
        const char* why = !x               ? " is not a finite number"
                          : !(*x > 0)      ? " is not finite"
                          : std::isinf(*x) ? " is not finite"
                                           : " is positive; a log-probability is at most 0";
        first = name + "[" + std::to_string(i) + "] = " + value_text(item) + why;
      }
    }
    if (num_bad == 1) return bad(first);
    if (num_bad > 1) {
      return bad(first + "; " + std::to_string(num_bad) + " of " + std::to_string(out.size()) +
                 " values of this row are bad");
    }
    row.logprobs = std::move(out);
    return {};
  }

  // What logs write where there is no number: null, and the words of Python and C.
  static std::optional<float> not_a_number(const JsonValue& v) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    if (v.is(JsonValue::Kind::kNull)) return std::numeric_limits<float>::quiet_NaN();
    if (v.is_number()) return v.text.starts_with('-') ? -kInf : kInf;  // beyond fp32
    if (!v.is(JsonValue::Kind::kString)) return {};
    for (const char* word : {"NaN", "nan", "-nan", "None", "null"}) {
      if (v.text == word) return std::numeric_limits<float>::quiet_NaN();
    }
    for (const char* word : {"inf", "Infinity", "Inf", "+inf"}) {
      if (v.text == word) return kInf;
      if (v.text == std::string("-") + word) return -kInf;
    }
    return {};
  }

  // Per scored token, or per token, of which the scored tail is kept.
  Status read_mask(const JsonValue& json, TokenRow& row) {
    const std::string name = key("mask");
    const JsonValue* v = json.find(name);
    if (!v || v->is(JsonValue::Kind::kNull)) return {};
    const size_t scored = static_cast<size_t>(row.num_scored());
    if (!v->is(JsonValue::Kind::kArray) ||
        (v->items.size() != scored && v->items.size() != row.tokens.size())) {
      return bad(name + " must hold one 0 or 1 per scored token (" + std::to_string(scored) +
                 ") or per token (" + std::to_string(row.tokens.size()) + ")" +
                 (v->is(JsonValue::Kind::kArray) ? "; it holds " + std::to_string(v->items.size())
                                                 : ", not " + value_text(*v)));
    }
    std::vector<uint8_t> out(scored);
    const size_t skip = v->items.size() - scored;
    for (size_t i = 0; i < v->items.size(); ++i) {
      const JsonValue& item = v->items[i];
      if (!item.is_number() && !item.is(JsonValue::Kind::kBool)) {
        return bad(name + "[" + std::to_string(i) + "] = " + value_text(item) + " is not 0 or 1");
      }
      if (item.number != 0 && item.number != 1) {
        return bad(name + "[" + std::to_string(i) + "] = " + value_text(item) + " is not 0 or 1");
      }
      if (i >= skip) out[i - skip] = item.number != 0;
    }
    row.mask = std::move(out);
    return {};
  }

  Status read_temperature(const JsonValue& json, TokenRow& row) {
    const std::string name = key("temperature");
    const JsonValue* v = json.find(name);
    if (!v || v->is(JsonValue::Kind::kNull)) return {};
    if (!v->is_number() || !v->finite || !(v->number > 0)) {
      return bad(name + " = " + value_text(*v) + " is not a finite number above 0");
    }
    row.temperature = v->number;
    return {};
  }

  Status read_suppress(const JsonValue& json, TokenRow& row) {
    const std::string name = key("suppress");
    const JsonValue* v = json.find(name);
    if (!v || v->is(JsonValue::Kind::kNull)) return {};
    if (!v->is(JsonValue::Kind::kArray))
      return bad(name + " = " + value_text(*v) + ", not an array");
    std::vector<int32_t> out(v->items.size());
    for (size_t i = 0; i < out.size(); ++i) {
      SB_DO(read_token(v->items[i], name + "[" + std::to_string(i) + "]", out[i]));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    for (size_t i = static_cast<size_t>(row.prompt_len); i < row.tokens.size(); ++i) {
      if (std::binary_search(out.begin(), out.end(), row.tokens[i])) {
        return bad("tokens[" + std::to_string(i) + "] = " + std::to_string(row.tokens[i]) +
                   " is scored and in " + name + "; a suppressed id has no log-probability");
      }
    }
    row.suppress = std::move(out);
    return {};
  }

  void keep_extra(const JsonValue& json, TokenRow& row) const {
    JsonValue extra;
    extra.kind = JsonValue::Kind::kObject;
    for (const auto& member : json.members) {
      const bool read = std::any_of(std::begin(kKeys), std::end(kKeys),
                                    [&](const char* k) { return key(k) == member.name; });
      if (!read) extra.members.push_back(member);
    }
    if (!extra.members.empty()) row.extra = extra.json();
  }

  const std::string& where_;
  const int64_t vocab_, max_position_;
  const TokenRowOptions& options_;
  std::string at_;  // "line 3, row \"r7\""
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Why two rows may not share an id, in words: the same row twice, or two rows that contradict.
std::string repeated(const TokenRow& a, const TokenRow& b) {
  if (a.tokens != b.tokens || a.prompt_len != b.prompt_len) return "with other tokens";
  const bool same =
      a.logprobs.has_value() == b.logprobs.has_value() &&
      (!a.logprobs || std::equal(a.logprobs->begin(), a.logprobs->end(), b.logprobs->begin(),
                                 [](float x, float y) { return float_bits(x) == float_bits(y); }));
  return same ? "with the same contents" : "with the same tokens and other log-probabilities";
}

}  // namespace

Status add_key_rename(const std::string& text, TokenRowOptions& options) {
  const size_t eq = text.find('=');
  const std::string ours = text.substr(0, eq);
  std::string known;
  for (const char* k : kKeys) known += std::string(known.empty() ? "" : ", ") + k;
  if (eq == std::string::npos || eq + 1 == text.size() || !is_known_key(ours)) {
    return refuse(Code::kUsage, "--key " + text, "it is not OURS=THEIRS with OURS one of " + known,
                  "--key logprobs=rollout_log_probs");
  }
  options.keys[ours] = text.substr(eq + 1);
  return {};
}

Result<TokenLog> parse_token_log(std::string_view text, const std::string& where, int64_t vocab,
                                 int64_t max_position, const TokenRowOptions& options) {
  RowReader reader(where, vocab, max_position, options);
  TokenLog log;
  struct Seen {
    int64_t line;
    size_t row;
  };
  std::unordered_map<std::string, Seen> seen;
  for (Lines lines{.rest = text, .line = {}}; lines.next();) {
    if (interrupted()) return stopped("read token rows from " + where);
    if (is_blank(lines.line)) continue;
    SB_TRY(json, reader.parse(lines.line, lines.number));
    if (!log.header && log.rows.empty() && json.find("samebits")) {
      SB_TRY(header, reader.read_header(json));
      log.header = std::move(header);
      continue;
    }
    SB_TRY(row, reader.read(json));
    if (log.header) SB_DO(reader.check_header(row, *log.header));
    const auto [it, fresh] = seen.emplace(row.id, Seen{lines.number, log.rows.size()});
    if (!fresh) {
      return reader.bad("the id appeared before, in line " + std::to_string(it->second.line) +
                            ", " + repeated(log.rows[it->second.row], row),
                        "one row an id; --key id=NAME when another key tells samples apart");
    }
    log.rows.push_back(std::move(row));
  }
  if (log.rows.empty()) {
    return RowReader(where, vocab, max_position, options)
        .bad(log.header ? "it holds a header and no rows" : "it holds no rows",
             "one JSON object per line");
  }
  return log;
}

Result<TokenLog> read_token_log(const std::string& path_or_dash, int64_t vocab,
                                int64_t max_position, const TokenRowOptions& options) {
  if (path_or_dash == "-") {
    SB_TRY(text, read_text("-"));
    return parse_token_log(text, "standard input", vocab, max_position, options);
  }
  // A map, so a large file costs no memory beyond its rows.
  SB_TRY(map, MappedFile::open(path_or_dash));
  return parse_token_log(map.text(), path_or_dash, vocab, max_position, options);
}

Result<std::vector<TokenRow>> parse_token_rows(std::string_view text, const std::string& where,
                                               int64_t vocab, int64_t max_position,
                                               const TokenRowOptions& options) {
  SB_TRY(log, parse_token_log(text, where, vocab, max_position, options));
  return std::move(log.rows);
}

Result<std::vector<TokenRow>> read_token_rows(const std::string& path_or_dash, int64_t vocab,
                                              int64_t max_position,
                                              const TokenRowOptions& options) {
  SB_TRY(log, read_token_log(path_or_dash, vocab, max_position, options));
  return std::move(log.rows);
}

}  // namespace sb
