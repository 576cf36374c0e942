// Reports as text, JSON and one offline HTML page. Pure functions of their inputs: no terminal, no
// clock, no locale, so tests compare them as strings; cli/console decides about colour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "samebits/gate/compare.h"

namespace sb {

// Columns a terminal uses for UTF-8 text: combining marks and colour escapes take none, East Asian
// wide characters and emoji two.
int display_width(std::string_view text);

enum class Align { kLeft, kRight };

// An aligned table with a header line; a missing cell is empty. Lines carry no trailing spaces.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, std::vector<Align> align = {});
  void add(std::vector<std::string> cells);
  std::string text(std::string_view indent = "  ") const;
  size_t size() const { return rows_.size(); }

 private:
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// One word for a code, as reports head themselves: "EQUAL", "DRIFT", …
// "0x3f80" or "0xbf800000": the bits of an element that differs.
std::string bits_text(const Difference& d, bool a);
const char* verdict_word(Code code);

std::string comparison_text(const Comparison& c);
std::string comparison_json(const Comparison& c);  // one object, indented, with a final newline
std::string comparison_html(const Comparison& c);
std::string comparison_body(const Comparison& c);  // of that page, without its heading
std::string verdict_heading(Code code);            // <h1> with verdict and exit code

// {"error":{"code","name","asked","reasons","remedy"}} with a final newline.
std::string refusal_json(const Refusal& refusal);

std::string html_escape(std::string_view text);
// A whole page around a body: one file, no network, light and dark.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace sb
