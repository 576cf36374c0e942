#include "samebits/model/json_strict.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace sb {

using nlohmann::json;

namespace {

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing X -
// invalid literal; last read: '…'": the library's name goes, the place and the reason stay.
std::string plain(std::string what) {
  if (what.starts_with("[")) what.erase(0, std::min(what.size(), what.find("] ") + 2));
  constexpr std::string_view kHead = "parse error at ", kSyntax = "syntax error ";
  if (what.starts_with(kHead)) what.erase(0, kHead.size());
  if (const size_t at = what.find(kSyntax); at != what.npos) {
    const size_t reason = what.find(" - ", at);
    if (reason != what.npos) what.erase(at, reason + 3 - at);
  }
  if (const size_t at = what.find("; last read"); at != what.npos) what.resize(at);
  return what;
}

}  // namespace

Result<json> parse_json_strict(std::string_view text, const std::string& where) {
  constexpr int kMaxDepth = 64;
  std::vector<std::set<std::string>> open_keys;
  std::string fault;
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) fault = "it is nested deeper than " + std::to_string(kMaxDepth);
    if (event == json::parse_event_t::object_start) open_keys.emplace_back();
    if (event == json::parse_event_t::object_end) open_keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_keys.back().insert(key).second && fault.empty()) {
        fault = "key \"" + key + "\" appears twice in one object; parsers disagree on which counts";
      }
    }
    return fault.empty();
  };
  json out;
  try {
    out = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& e) {
    if (fault.empty()) fault = plain(e.what());
  }
  if (!fault.empty()) return refuse(Code::kBrokenData, "read " + where + " as JSON", fault);
  return out;
}

}  // namespace sb
