#include "samebits/gate/header_json.h"

#include "samebits/arith/profile.h"
#include "samebits/chain/schedule.h"
#include "samebits/gate/numbers.h"

namespace sb {
namespace {

using Kind = JsonValue::Kind;

std::string read_text_member(const JsonValue& object, const char* key, std::string& out) {
  const JsonValue* v = object.find(key);
  if (!v) return "the key " + in_quotes(key) + " is missing";
  if (!v->is(Kind::kString) || v->text.empty()) {
    return std::string(key) + " = " + value_text(*v) + " is not a non-empty string";
  }
  out = v->text;
  return {};
}

// Values that no run has would make two files "equal" that nothing can have written.
std::string check_profile(const std::string& name) {
  std::string known;
  for (const Profile p : kProfiles) {
    if (name == profile_name(p)) return {};
    known += (known.empty() ? "" : ", ") + std::string(profile_name(p));
  }
  return "profile = " + in_quotes(name) + " is none of " + known;
}

std::string check_schedule(const std::string& name) {
  if (parse_schedule(name)) return {};
  return "schedule = " + in_quotes(name) +
         " is none of train, prefill, chunked:N, decode, decode:TAIL";
}

std::string read_temperature(const JsonValue& object, float& out) {
  const JsonValue* v = object.find("temperature");
  if (!v) return "the key \"temperature\" is missing";
  if (!v->is_number() || !v->finite || !(v->number > 0)) {
    return "temperature = " + value_text(*v) + " is not a finite number above 0";
  }
  out = v->number;
  return {};
}

std::string read_suppress(const JsonValue& object, std::vector<int32_t>& out) {
  const JsonValue* v = object.find("suppress");
  if (!v) return "the key \"suppress\" is missing";
  if (!v->is(Kind::kArray)) return "suppress = " + value_text(*v) + " is not an array";
  for (const JsonValue& item : v->items) {
    if (!item.is(Kind::kInt) || item.integer < 0 || item.integer > INT32_MAX ||
        (!out.empty() && item.integer <= out.back())) {
      return "suppress holds " + value_text(item) + "; it lists token ids in ascending order";
    }
    out.push_back(static_cast<int32_t>(item.integer));
  }
  return {};
}

}  // namespace

std::string header_members(const RunHeader& header) {
  std::string out = "\"model\":" + json_string(header.model);
  out += ",\"weights\":" + json_string(header.weights);
  out += ",\"contracts\":" + json_string(header.contracts);
  out += ",\"profile\":" + json_string(header.profile);
  out += ",\"temperature\":" + shortest(header.temperature);
  out += ",\"suppress\":[";
  for (size_t i = 0; i < header.suppress.size(); ++i) {
    if (i) out += ',';
    out += std::to_string(header.suppress[i]);
  }
  return out + "],\"schedule\":" + json_string(header.schedule);
}

tl::expected<RunHeader, std::string> header_from_json(const JsonValue& object) {
  RunHeader h;
  std::string error = read_text_member(object, "model", h.model);
  if (error.empty()) error = read_text_member(object, "weights", h.weights);
  if (error.empty()) error = read_text_member(object, "contracts", h.contracts);
  if (error.empty()) error = read_text_member(object, "profile", h.profile);
  if (error.empty()) error = check_profile(h.profile);
  if (error.empty()) error = read_temperature(object, h.temperature);
  if (error.empty()) error = read_suppress(object, h.suppress);
  if (error.empty()) error = read_text_member(object, "schedule", h.schedule);
  if (error.empty()) error = check_schedule(h.schedule);
  if (!error.empty()) return tl::unexpected(std::move(error));
  return h;
}

bool is_hex_digest(std::string_view s) {
  return s.size() == 16 && s.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace sb
