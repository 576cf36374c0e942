#include "samebits/model/json_strict.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace sb {

using nlohmann::json;

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
    // The library's text names the byte: "[json.exception.parse_error.101] parse error at line …".
    if (fault.empty()) fault = e.what();
  }
  if (!fault.empty()) return refuse(Code::kBrokenData, "read " + where + " as JSON", fault);
  return out;
}

}  // namespace sb
