// UTF-8, strictly: overlong forms, surrogates and codes beyond Unicode are not text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sb {

// Takes one code point off the front; −1 for a byte that is not UTF-8, which is taken alone.
int32_t next_utf8(std::string_view& text);
bool is_utf8(std::string_view text);

// Control characters and bytes that are not UTF-8 as "\\x1b", so that a name out of a file can
// neither command a terminal nor forge a line of a message.
std::string printable(std::string_view text);

}  // namespace sb
