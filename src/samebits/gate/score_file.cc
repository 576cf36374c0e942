#include "samebits/gate/score_file.h"

#include <cmath>
#include <unordered_map>

#include "samebits/base/digest.h"
#include "samebits/gate/header_json.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/json_line.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

using Kind = JsonValue::Kind;

constexpr const char* kVersion = "score/1";
// Keys in the order they are written; the reader demands exactly these, in this order.
constexpr const char* kHeaderKeys[] = {"samebits", "model",       "weights",  "contracts",
                                       "profile",  "temperature", "suppress", "schedule"};
constexpr const char* kRowKeys[] = {"id", "tokens", "prompt_len", "logprobs"};

// Why a log-probability cannot stand in a score file; "" if it can.
std::string bad_logprob(float x) {
  if (!std::isfinite(x)) return "is not finite (bits " + bits_hex(x) + ")";
  if (x > 0) return "is positive; a log-probability is at most 0";
  return {};
}

class ScoreParser {
 public:
  explicit ScoreParser(const std::string& where) : where_(where) {}

  Result<ScoreFile> parse(std::string_view text) {
    ScoreFile file;
    std::unordered_map<std::string, int64_t> line_of;
    Lines lines{.rest = text, .line = {}};
    while (lines.next()) {
      if (interrupted()) return stopped("read scores from " + where_);
      at_ = "line " + std::to_string(lines.number);
      auto json = parse_json_line(lines.line);
      if (!lines.terminated) {
        return bad("the file ends inside this line" +
                   (json ? std::string() : " (" + json.error() + ")"));
      }
      if (!json) return bad(json.error());
      if (!json->is(Kind::kObject)) return bad("not a JSON object");
      if (lines.number == 1) {
        SB_DO(read_header(*json, file.header));
        continue;
      }
      ScoreRow row;
      SB_DO(read_row(*json, row));
      const auto [it, fresh] = line_of.emplace(row.id, lines.number);
      if (!fresh) return bad("the id appeared before, in line " + std::to_string(it->second));
      file.rows.push_back(std::move(row));
    }
    at_.clear();
    if (lines.number == 0) return bad("the file is empty");
    if (file.rows.empty()) return bad("it holds a header and no rows");
    return file;
  }

 private:
  tl::unexpected<Refusal> bad(std::string what) const {
    return refuse(Code::kBrokenData, "read scores from " + where_,
                  (at_.empty() ? "" : at_ + ": ") + std::move(what));
  }

  template <size_t N>
  Status check_keys(const JsonValue& json, const char* const (&keys)[N]) const {
    for (const char* key : keys) {
      if (!json.find(key)) return bad("the key " + in_quotes(key) + " is missing");
    }
    for (size_t i = 0; i < json.members.size(); ++i) {
      const std::string& name = json.members[i].name;
      if (i >= N || name != keys[i])
        return bad("unexpected key " + in_quotes(name) + " or key order");
    }
    return {};
  }

  Status text_of(const JsonValue& json, const char* key, std::string& out) const {
    const JsonValue& v = *json.find(key);
    if (!v.is(Kind::kString) || v.text.empty()) {
      return bad(std::string(key) + " = " + value_text(v) + " is not a non-empty string");
    }
    out = v.text;
    return {};
  }

  Status read_header(const JsonValue& json, RunHeader& header) const {
    const JsonValue* version = json.find("samebits");
    if (!version) return bad("the key \"samebits\" is missing; this is no score file");
    if (!version->is(Kind::kString) || version->text != kVersion) {
      return bad("unknown version " + value_text(*version) + "; this program reads \"score/1\"");
    }
    SB_DO(check_keys(json, kHeaderKeys));
    auto parsed = header_from_json(json);
    if (!parsed) return bad(parsed.error());
    header = std::move(*parsed);
    return {};
  }

  Status read_row(const JsonValue& json, ScoreRow& row) {
    SB_DO(check_keys(json, kRowKeys));
    SB_DO(text_of(json, "id", row.id));
    at_ += ", row " + in_quotes(row.id);
    SB_DO(text_of(json, "tokens", row.tokens));
    if (!is_hex_digest(row.tokens))
      return bad("tokens = " + in_quotes(row.tokens) + " is not a digest");
    const JsonValue& prompt_len = *json.find("prompt_len");
    if (!prompt_len.is(Kind::kInt) || prompt_len.integer < 1 || prompt_len.integer > INT32_MAX) {
      return bad("prompt_len = " + value_text(prompt_len) + " is not an integer of at least 1");
    }
    row.prompt_len = static_cast<int>(prompt_len.integer);
    const JsonValue& logprobs = *json.find("logprobs");
    if (!logprobs.is(Kind::kArray) || logprobs.items.empty()) {
      return bad("logprobs is not an array with at least one number");
    }
    if (logprobs.items.size() > static_cast<size_t>(INT32_MAX - row.prompt_len)) {
      return bad("prompt_len = " + std::to_string(row.prompt_len) + " leaves no room for " +
                 std::to_string(logprobs.items.size()) + " logprobs in an int32 position");
    }
    row.logprobs.reserve(logprobs.items.size());
    for (size_t i = 0; i < logprobs.items.size(); ++i) {
      const JsonValue& v = logprobs.items[i];
      std::string why;
      if (!v.is_number() || !v.finite)
        why = "is not a finite number";
      else
        why = bad_logprob(v.number);
      if (!why.empty()) {
        return bad("logprobs[" + std::to_string(i) + "] = " + value_text(v) + " " + why);
      }
      row.logprobs.push_back(v.number);
    }
    return {};
  }

  const std::string& where_;
  std::string at_;
};

}  // namespace

std::string token_digest(std::span<const int32_t> tokens) {
  uint64_t sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    sum += digest_element(static_cast<uint32_t>(tokens[i]), i);
  }
  return hex64(sum);
}

std::string score_header_line(const RunHeader& header) {
  return "{\"samebits\":" + json_string(kVersion) + "," + header_members(header) + "}\n";
}

std::string score_row_line(const ScoreRow& row) {
  std::string out = "{\"id\":" + json_string(row.id) + ",\"tokens\":" + json_string(row.tokens) +
                    ",\"prompt_len\":" + std::to_string(row.prompt_len) + ",\"logprobs\":[";
  for (size_t i = 0; i < row.logprobs.size(); ++i) {
    if (i) out += ',';
    out += shortest(row.logprobs[i]);
  }
  out += "]}\n";
  return out;
}

Result<ScoreWriter> ScoreWriter::create(const std::string& path, bool force,
                                        const RunHeader& header) {
  SB_TRY(out, OutputFile::create(path, force));
  SB_DO(out.write(score_header_line(header)));
  return ScoreWriter(std::move(out));
}

Status ScoreWriter::add(const ScoreRow& row) {
  SB_ASSERT(is_hex_digest(row.tokens) && row.prompt_len >= 1 && !row.logprobs.empty(),
            "a score row is not complete");
  for (size_t i = 0; i < row.logprobs.size(); ++i) {
    if (const std::string why = bad_logprob(row.logprobs[i]); !why.empty()) {
      return refuse(
          Code::kBrokenData, "write scores",
          "row " + in_quotes(row.id) + ": the log-probability of token " +
              std::to_string(row.prompt_len + static_cast<int64_t>(i)) + " " + why,
          "score again with --trace; compare names the first boundary that is not finite");
    }
  }
  ++rows_;
  return out_.write(score_row_line(row));
}

Status ScoreWriter::add(const TokenRow& row, std::span<const float> logprobs) {
  SB_ASSERT(static_cast<int64_t>(logprobs.size()) == row.num_scored(),
            "as many log-probabilities as scored tokens");
  return add(ScoreRow{.id = row.id,
                      .tokens = token_digest(row.tokens),
                      .prompt_len = row.prompt_len,
                      .logprobs = {logprobs.begin(), logprobs.end()}});
}

Status ScoreWriter::commit() {
  if (rows_ == 0) return refuse(Code::kBrokenData, "write scores", "there are no rows to write");
  return out_.commit();
}

Result<ScoreFile> parse_score_file(std::string_view text, const std::string& where) {
  return ScoreParser(where).parse(text);
}

Result<ScoreFile> read_score_file(const std::string& path_or_dash) {
  if (path_or_dash == "-") {
    SB_TRY(text, read_text("-"));
    return parse_score_file(text, "standard input");
  }
  SB_TRY(map, MappedFile::open(path_or_dash));
  return parse_score_file(map.text(), path_or_dash);
}

}  // namespace sb
