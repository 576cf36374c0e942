// NaN, Infinity and -Infinity as Python writes them: bare, which is no JSON.
#pragma once

#include <string>
#include <string_view>

namespace sb {

bool has_bare_words(std::string_view line);  // may also be true for such words inside strings
// The line with these words in quotes; text inside strings stays.
std::string quote_bare_words(std::string_view line);

}  // namespace sb
