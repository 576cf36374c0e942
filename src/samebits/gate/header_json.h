// A RunHeader as JSON members, shared by score and trace files so that both say it alike.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "samebits/gate/json_line.h"
#include "samebits/gate/run_header.h"

namespace sb {

// `"model":…,"weights":…,"contracts":…,"profile":…,"temperature":…,"suppress":[…],"schedule":…`
std::string header_members(const RunHeader& header);

// Strict: all members there, texts not empty, a profile and a schedule that exist, temperature
// finite and above 0, ids ascending.
tl::expected<RunHeader, std::string> header_from_json(const JsonValue& object);

bool is_hex_digest(std::string_view s);  // 16 lower-case hex digits

}  // namespace sb
