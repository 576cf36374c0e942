// One line of JSON as a small value tree, read strictly and without loss: fp32 values come from
// their text with a single rounding, −0 keeps its sign, a repeated key of the outer object and
// nesting beyond 64 are refused, and so is text that is not UTF-8. The JSON library stays in the
// .cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace sb {

struct JsonMember;

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool finite = true;               // kFloat: false when it overflows fp32
  int64_t integer = 0;              // kInt; kBool as 0 or 1
  float number = 0;                 // kInt and kFloat
  std::string text;                 // kString: its text; kFloat: as written
  std::vector<JsonValue> items;     // kArray
  std::vector<JsonMember> members;  // kObject, in file order

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::kInt || kind == Kind::kFloat; }
  const JsonValue* find(std::string_view key) const;
  std::string json() const;  // compact text
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// The error says what is wrong and at which column.
tl::expected<JsonValue, std::string> parse_json_line(std::string_view line);

// What a wrong value was, for messages: its JSON text, cut to 40 bytes.
std::string value_text(const JsonValue& v);

// Walks the lines of a text; a last line without '\n' has terminated = false.
struct Lines {
  std::string_view rest;
  std::string_view line;  // without '\n'
  int64_t number = 0;     // from 1
  bool terminated = false;
  bool next();
};

// Longer lines are refused: the value tree needs some 50 bytes per byte of text.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;

}  // namespace sb
