#include "samebits/gate/json_line.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "samebits/gate/numbers.h"

namespace sb {
namespace {

using Kind = JsonValue::Kind;
constexpr size_t kMaxDepth = 64;

// Builds the tree from parser events; returning false stops the parse with `error` set.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonValue root;
  std::string error;

  bool null() override { return put({}); }
  bool boolean(bool b) override { return put_integer(Kind::kBool, b); }
  bool number_integer(int64_t n) override {
    JsonValue v;
    v.kind = Kind::kInt;
    v.integer = n;
    // The parser calls this for numbers with a minus sign only, so 0 was written "-0".
    v.number = n == 0 ? -0.0f : static_cast<float>(n);
    return put(std::move(v));
  }
  bool number_unsigned(uint64_t n) override {
    if (n > static_cast<uint64_t>(INT64_MAX)) {
      return number_float(static_cast<double>(n), std::to_string(n));
    }
    return put_integer(Kind::kInt, static_cast<int64_t>(n));
  }
  bool number_float(double approximate, const std::string& raw) override {
    JsonValue v;
    v.kind = Kind::kFloat;
    v.text = raw;
    const auto x = parse_float(raw);
    // No value means out of range: beyond the largest fp32, or so small that it rounds to zero.
    const bool underflow = !x && std::fabs(approximate) < 1;
    v.finite = x || underflow;
    v.number = x.value_or(raw[0] == '-' ? -0.0f : 0.0f);
    return put(std::move(v));
  }
  bool string(std::string& s) override {
    JsonValue v;
    v.kind = Kind::kString;
    v.text = std::move(s);
    return put(std::move(v));
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Kind::kObject); }
  bool start_array(size_t) override { return open(Kind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& k) override {
    if (open_.size() == 1 && !outer_keys_.insert(k).second) {
      error = "the key " + in_quotes(k) + " appears twice";
      return false;
    }
    open_.back()->members.push_back({std::move(k), {}});
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& e) override {
    std::string what = e.what();
    if (const size_t at = what.rfind("; last read"); at != std::string::npos) what.resize(at);
    // "[json.exception.out_of_range.406] number overflow …": the library's name is no help.
    if (const size_t at = what.find("] "); what[0] == '[' && at != std::string::npos) {
      what.erase(0, at + 2);
    }
    if (const size_t at = what.find(" - "); at != std::string::npos) what.erase(0, at + 3);
    error = "not JSON at column " + std::to_string(position) + ": " + what;
    return false;
  }

 private:
  JsonValue& place() {
    if (open_.empty()) return root;
    JsonValue& parent = *open_.back();
    if (parent.kind == Kind::kObject) return parent.members.back().value;
    return parent.items.emplace_back();
  }
  bool put(JsonValue v) {
    place() = std::move(v);
    return true;
  }
  bool put_integer(Kind kind, int64_t n) {
    JsonValue v;
    v.kind = kind;
    v.integer = n;
    v.number = static_cast<float>(n);
    return put(std::move(v));
  }
  bool open(Kind kind) {
    if (open_.size() >= kMaxDepth) {
      error = "nested deeper than " + std::to_string(kMaxDepth);
      return false;
    }
    JsonValue& v = place();
    v.kind = kind;
    open_.push_back(&v);  // stays in place: its parent grows only after it is closed
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<JsonValue*> open_;
  std::set<std::string> outer_keys_;
};

void append_json(const JsonValue& v, std::string& out) {
  switch (v.kind) {
    case Kind::kNull: out += "null"; return;
    case Kind::kBool: out += v.integer ? "true" : "false"; return;
    case Kind::kInt: out += std::to_string(v.integer); return;
    case Kind::kFloat: out += v.text; return;
    case Kind::kString: out += json_string(v.text); return;
    case Kind::kArray:
      out += '[';
      for (size_t i = 0; i < v.items.size(); ++i) {
        if (i) out += ',';
        append_json(v.items[i], out);
      }
      out += ']';
      return;
    case Kind::kObject:
      out += '{';
      for (size_t i = 0; i < v.members.size(); ++i) {
        if (i) out += ',';
        (out += json_string(v.members[i].name)) += ':';
        append_json(v.members[i].value, out);
      }
      out += '}';
  }
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string JsonValue::json() const {
  std::string out;
  append_json(*this, out);
  return out;
}

tl::expected<JsonValue, std::string> parse_json_line(std::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return tl::unexpected("longer than " + grouped(kMaxLineBytes) + " bytes");
  }
  Builder builder;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &builder)) {
    std::string error = builder.error.empty() ? "not JSON" : builder.error;
    if (line.find("NaN") != line.npos || line.find("Infinity") != line.npos) {
      error += " (NaN and Infinity are not JSON; a log-probability must be a finite number)";
    }
    return tl::unexpected(std::move(error));
  }
  return std::move(builder.root);
}

std::string value_text(const JsonValue& v) {
  if (v.is(Kind::kArray)) return "an array";
  if (v.is(Kind::kObject)) return "an object";
  if (v.is(Kind::kString)) return in_quotes(v.text, 40);
  std::string out = v.json();
  if (out.size() > 40) out = out.substr(0, 40) + "…";
  return out;
}

bool Lines::next() {
  if (rest.empty()) return false;
  ++number;
  const size_t end = rest.find('\n');
  terminated = end != std::string_view::npos;
  line = rest.substr(0, end);
  rest.remove_prefix(terminated ? end + 1 : rest.size());
  return true;
}

}  // namespace sb
