// JSON as this project reads it: one value, no duplicate keys (two parsers would keep different
// ones), nesting at most 64 deep. Include nlohmann/json.hpp only in .cc files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "samebits/base/result.h"

namespace sb {

// `where` names the source in messages. Anything malformed is kBrokenData.
Result<nlohmann::json> parse_json_strict(std::string_view text, const std::string& where);

}  // namespace sb
