#include "samebits/gate/token_rows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "samebits/base/file.h"
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

  Result<TokenRow> read(std::string_view line, int64_t number) {
    at_ = "line " + std::to_string(number);
    auto parsed = parse_json_line(line);
    if (!parsed) return bad(parsed.error());
    if (!parsed->is(JsonValue::Kind::kObject)) return bad("not a JSON object");
    const JsonValue& json = *parsed;
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
                 " are expected");
    }
    std::vector<float> out(v->items.size());
    std::string first;  // the first bad value; the rest are counted
    int64_t num_bad = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const JsonValue& item = v->items[i];
      std::optional<float> x;
      if (item.is_number() && item.finite) x = item.number;
      if (item.is(JsonValue::Kind::kString)) x = parse_float(item.text);
      if (x && std::isfinite(*x) && *x <= 0) {
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

Result<std::vector<TokenRow>> parse_token_rows(std::string_view text, const std::string& where,
                                               int64_t vocab, int64_t max_position,
                                               const TokenRowOptions& options) {
  RowReader reader(where, vocab, max_position, options);
  std::vector<TokenRow> rows;
  std::unordered_map<std::string, int64_t> line_of;
  for (Lines lines{.rest = text, .line = {}}; lines.next();) {
    if (interrupted()) return stopped("read token rows from " + where);
    if (is_blank(lines.line)) continue;
    SB_TRY(row, reader.read(lines.line, lines.number));
    const auto [it, fresh] = line_of.emplace(row.id, lines.number);
    if (!fresh) return reader.bad("the id appeared before, in line " + std::to_string(it->second));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    return RowReader(where, vocab, max_position, options)
        .bad("it holds no rows", "one JSON object per line");
  }
  return rows;
}

Result<std::vector<TokenRow>> read_token_rows(const std::string& path_or_dash, int64_t vocab,
                                              int64_t max_position,
                                              const TokenRowOptions& options) {
  if (path_or_dash == "-") {
    SB_TRY(text, read_text("-"));
    return parse_token_rows(text, "standard input", vocab, max_position, options);
  }
  // A map, so a large file costs no memory beyond its rows.
  SB_TRY(map, MappedFile::open(path_or_dash));
  return parse_token_rows(map.text(), path_or_dash, vocab, max_position, options);
}

}  // namespace sb
