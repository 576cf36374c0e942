// Numbers as text, without locale and without loss: what a score file says is what was computed.
// Also the small JSON text helpers that writers share, so that bytes are the same everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "samebits/base/utf8.h"

namespace sb {

// Shortest decimal that reads back to the same fp32, valid as a JSON number; x must be finite.
// −0 is "-0.0": JSON readers take "-0" for an integer and drop its sign.
std::string shortest(float x);
// Same for double; used in reports, where a non-finite number becomes "null".
std::string shortest_or_null(double x);

// Exact fp32 of a text: decimal ("-1.25e-3", rounded once), fp32 bits ("0xbf800000", exactly eight
// digits) or a C99 hex float ("-0x1.8p-1"). Nothing else, no spaces; overflow gives nothing.
std::optional<float> parse_float(std::string_view text);

std::string bits_hex(float x);  // "0xbf800000"

// Number of fp32 steps between two finite values; −0 and +0 are one step apart.
int64_t ulp_distance(float a, float b);

// 12345 → "12,345", as reports print counts.
std::string grouped(int64_t n);

// Text as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
// The same for messages: at most `limit` bytes of text, then "…".
std::string in_quotes(std::string_view text, size_t limit = 80);

}  // namespace sb
