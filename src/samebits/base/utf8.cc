#include "samebits/base/utf8.h"

namespace sb {

int32_t next_utf8(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const int extra = lead < 0x80   ? 0
                    : lead < 0xc2 ? -1
                    : lead < 0xe0 ? 1
                    : lead < 0xf0 ? 2
                    : lead < 0xf5 ? 3
                                  : -1;
  int32_t code = extra <= 0 ? lead : lead & (0x3f >> extra);
  bool good = extra >= 0 && static_cast<size_t>(extra) < text.size();
  for (int i = 1; good && i <= extra; ++i) {
    good = (byte(i) & 0xc0) == 0x80;
    code = (code << 6) | (byte(i) & 0x3f);
  }
  // Overlong forms, UTF-16 surrogates and codes beyond Unicode are not text.
  constexpr int32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  good = good && code >= kSmallest[extra] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(good ? extra + 1 : 1);
  return good ? code : -1;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (next_utf8(text) < 0) return false;
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const char* start = text.data();
    const int32_t code = next_utf8(text);
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);  // −1 is no text at all
    for (; start != text.data(); ++start) {
      const auto byte = static_cast<uint8_t>(*start);
      if (control) {
        ((out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
      } else {
        out += *start;
      }
    }
  }
  return out;
}

}  // namespace sb
