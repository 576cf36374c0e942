// What stands beside the model in a checkpoint: generation_config.json, and other frameworks'
// windows.
#include <nlohmann/json.hpp>

#include "samebits/model/config_reader.h"
#include "samebits/model/json_strict.h"

namespace sb {

using nlohmann::json;

Status parse_generation_config(const std::string& text, const std::string& where,
                               Architecture& arch) {
  SB_TRY(config, parse_json_strict(text, where));
  const std::string asked = "read " + where;
  if (!config.is_object()) return refuse(Code::kBrokenData, asked, "it is not an object");
  auto ids = [&](const char* key, std::vector<int64_t>& to) -> Status {
    const auto it = config.find(key);
    if (it == config.end() || it->is_null()) return {};
    const json list = it->is_array() ? *it : json::array({*it});
    to.clear();
    for (const json& e : list) {
      if (!e.is_number_unsigned() || e.get<uint64_t>() >= static_cast<uint64_t>(arch.vocab)) {
        return refuse(Code::kBrokenData, asked,
                      std::string("key ") + key + " holds " + shown(e) + "; token ids are 0 to " +
                          std::to_string(arch.vocab - 1));
      }
      to.push_back(e.get<int64_t>());
    }
    return {};
  };
  SB_DO(ids("eos_token_id", arch.tokens.eos));
  SB_DO(ids("suppress_tokens", arch.tokens.suppress));
  arch.tokens.from_generation_config = true;
  return {};
}

Result<int> window_from_left_right(int64_t left, int64_t right) {
  if (right == 0 && left >= 0 && left < (int64_t{1} << 20)) return static_cast<int>(left + 1);
  return refuse(Code::kRefused,
                "read the window (" + std::to_string(left) + ", " + std::to_string(right) + ")",
                "a causal window of W keys is (W − 1, 0): the query is not counted on the left",
                "(1023, 0) for a window of 1024");
}

}  // namespace sb
