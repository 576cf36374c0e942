// Checks of numbers on the command line, before they are converted: the parser's own conversion
// reads octal and hexadecimal, wraps -1 to 2^64 − 1 and lets NaN pass a range.
#pragma once

#include <CLI/Validators.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace sb {

// Decimal digits with a value in lo … hi.
inline CLI::Validator whole_number(int64_t lo, uint64_t hi) {
  const std::string range = std::to_string(lo) + " to " + std::to_string(hi);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        uint64_t n = 0;
        const char* end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, n);
        if (error == std::errc() && at == end && n >= static_cast<uint64_t>(lo) && n <= hi) {
          return {};
        }
        return "\"" + text + "\" is not a whole number from " + range;
      },
      range);
}

// A finite number in lo … hi.
inline CLI::Validator finite_number(double lo, double hi) {
  const std::string range = CLI::detail::to_string(lo) + " to " + CLI::detail::to_string(hi);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        char* end = nullptr;
        const double x = std::strtod(text.c_str(), &end);
        if (!text.empty() && *end == '\0' && x >= lo && x <= hi) return {};
        return "\"" + text + "\" is not a number from " + range;
      },
      range);
}

// Token ids; that they lie in the model's vocabulary is checked when it is known.
inline CLI::Validator token_id() { return whole_number(0, INT32_MAX).description("ID"); }

}  // namespace sb
