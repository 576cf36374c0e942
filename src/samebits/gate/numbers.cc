#include "samebits/gate/numbers.h"

#include <charconv>
#include <cmath>

#include "samebits/base/bits.h"
#include "samebits/base/result.h"

namespace sb {
namespace {

constexpr char kHex[] = "0123456789abcdef";

template <class T>
std::string shortest_chars(T x) {
  char buf[32];  // the longest shortest double has 24 characters
  const auto [end, error] = std::to_chars(buf, buf + sizeof buf, x);
  SB_ASSERT(error == std::errc(), "a number did not fit its buffer");
  std::string out(buf, end);
  return out == "-0" ? "-0.0" : out;
}

// Whole-text parse; from_chars rounds once and knows no locale.
std::optional<float> chars_to_float(std::string_view text, std::chars_format format) {
  float x = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, x, format);
  if (error != std::errc() || end != last || !std::isfinite(x)) return {};
  return x;
}

}  // namespace

std::string shortest(float x) {
  SB_ASSERT(std::isfinite(x), "a non-finite number has no JSON form");
  return shortest_chars(x);
}

std::string shortest_or_null(double x) { return std::isfinite(x) ? shortest_chars(x) : "null"; }

std::optional<float> parse_float(std::string_view text) {
  std::string_view magnitude = text;
  const bool negative = magnitude.starts_with('-');
  if (negative) magnitude.remove_prefix(1);
  if (!magnitude.starts_with("0x") && !magnitude.starts_with("0X")) {
    return chars_to_float(text, std::chars_format::general);
  }
  magnitude.remove_prefix(2);
  if (magnitude.empty() || magnitude[0] == '-' || magnitude[0] == '+') return {};
  if (magnitude.find_first_of("pP") != std::string_view::npos) {
    const auto x = chars_to_float(magnitude, std::chars_format::hex);
    return x && negative ? -*x : x;
  }
  uint32_t bits = 0;
  const char* last = magnitude.data() + magnitude.size();
  const auto [end, error] = std::from_chars(magnitude.data(), last, bits, 16);
  if (negative || magnitude.size() != 8 || error != std::errc() || end != last) return {};
  return bits_float(bits);  // may be non-finite: callers say which place holds it
}

std::string bits_hex(float x) {
  std::string out = "0x00000000";
  uint32_t bits = float_bits(x);
  for (int i = 9; i >= 2; --i, bits >>= 4) out[i] = kHex[bits & 15];
  return out;
}

int64_t ulp_distance(float a, float b) {
  // Maps bit patterns to integers in numeric order: negatives descend below 2^31.
  const auto ordered = [](float x) -> int64_t {
    const uint32_t bits = float_bits(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  };
  const int64_t d = ordered(a) - ordered(b);
  return d < 0 ? -d : d;
}

std::string grouped(int64_t n) {
  std::string out = std::to_string(n);
  const size_t first = n < 0 ? 1 : 0;
  for (size_t i = out.size(); i > first + 3;) out.insert(i -= 3, 1, ',');
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char* start = text.data();
    const int32_t code = next_utf8(text);
    const char c = *start;
    if (code < 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      ((out += "\\u00") += kHex[code >> 4]) += kHex[code & 15];
    } else {
      out.append(start, static_cast<size_t>(text.data() - start));
    }
  }
  return out += '"';
}

std::string in_quotes(std::string_view text, size_t limit) {
  if (text.size() <= limit) return json_string(text);
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xc0) == 0x80) --limit;
  std::string out = json_string(text.substr(0, limit));
  out.pop_back();
  return out + "…\"";
}

}  // namespace sb
