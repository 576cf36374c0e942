#include "samebits/gate/bare_words.h"

namespace sb {
namespace {

constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};

}  // namespace

bool has_bare_words(std::string_view line) {
  return line.find("NaN") != line.npos || line.find("Infinity") != line.npos;
}

std::string quote_bare_words(std::string_view line) {
  std::string out;
  out.reserve(line.size() + 16);
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\' && i + 1 < line.size()) {
      out += line.substr(i, 2);  // an escaped quote ends no string
      ++i;
      continue;
    }
    if (line[i] == '"') in_string = !in_string;
    std::string_view word;
    for (const std::string_view w : kWords) {
      if (!in_string && line.substr(i).starts_with(w)) word = w;
    }
    if (word.empty()) {
      out += line[i];
    } else {
      out += '"' + std::string(word) + '"';
      i += word.size() - 1;
    }
  }
  return out;
}

}  // namespace sb
