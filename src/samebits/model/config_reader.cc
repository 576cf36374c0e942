#include "samebits/model/config_reader.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "samebits/base/utf8.h"

namespace sb {

using nlohmann::json;

tl::unexpected<Refusal> ConfigFaults::refusal(const std::string& where) const {
  Refusal r;
  r.code = broken.empty() ? Code::kRefused : Code::kBrokenData;
  r.asked = "run the model that " + printable(where) + " describes";
  for (const auto* faults : {&broken, &refused}) {
    for (const std::string& fault : *faults) r.reasons.push_back(printable(fault));
  }
  r.remedy = broken.empty() ? "a dense Gemma 4 checkpoint such as gemma-4-31B-it, or a preset of "
                              "`samebits model new`"
                            : "the config.json that belongs to the checkpoint, unedited";
  return tl::unexpected(std::move(r));
}

std::string shown(const json& value) {
  std::string s = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (s.size() > 60) s = s.substr(0, 57) + "...";
  return s;
}

void ConfigReader::broken(const std::string& key, const std::string& what) {
  faults_.broken.push_back("key " + path(key) + " " + what);
}
void ConfigReader::refused(const std::string& key, const std::string& what) {
  faults_.refused.push_back("key " + path(key) + " " + what);
}

const json* ConfigReader::find(const char* key) {
  known_.insert(key);
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool ConfigReader::has(const char* key) { return find(key) != nullptr; }

std::optional<int64_t> ConfigReader::whole(const char* key, const json& v, int64_t lo, int64_t hi) {
  const std::string range = std::to_string(lo) + " to " + std::to_string(hi);
  if (!v.is_number_integer()) {
    broken(key, "is " + shown(v) + ", but must be a whole number from " + range);
    return {};
  }
  const bool huge = v.is_number_unsigned() && v.get<uint64_t>() > uint64_t{INT64_MAX};
  if (huge || v.get<int64_t>() < lo || v.get<int64_t>() > hi) {
    refused(key, "is " + shown(v) + "; possible is " + range);
    return {};
  }
  return v.get<int64_t>();
}

int64_t ConfigReader::integer(const char* key, int64_t lo, int64_t hi) {
  const json* v = find(key);
  if (!v) {
    broken(key, "is missing; it is never guessed from other keys");
    return 0;
  }
  return whole(key, *v, lo, hi).value_or(0);
}

std::optional<int64_t> ConfigReader::optional_integer(const char* key, int64_t lo, int64_t hi) {
  const json* v = find(key);
  return v ? whole(key, *v, lo, hi) : std::nullopt;
}

double ConfigReader::positive(const char* key) {
  const json* v = find(key);
  if (!v) {
    broken(key, "is missing; it is never guessed from other keys");
  } else if (!v->is_number()) {
    broken(key, "is " + shown(*v) + ", but must be a number");
  } else if (const double x = v->get<double>(); !(x > 0) || !std::isfinite(x)) {
    refused(key, "is " + shown(*v) + ", but must be finite and above 0");
  } else {
    return x;
  }
  return 0;
}

std::string ConfigReader::text(const char* key) {
  const json* v = find(key);
  if (!v || !v->is_string()) {
    broken(key, v ? "is " + shown(*v) + ", but must be text" : std::string("is missing"));
    return {};
  }
  return v->get<std::string>();
}

void ConfigReader::flag(const char* key, bool must_be, std::optional<bool> absent,
                        const std::string& why) {
  const json* v = find(key);
  if (!v) {
    if (!absent) {
      broken(key, "is missing; it must be " + std::string(must_be ? "true" : "false"));
    } else if (*absent != must_be) {
      refused(key,
              "is missing, which means " + std::string(*absent ? "true" : "false") + ": " + why);
    }
  } else if (!v->is_boolean()) {
    broken(key, "is " + shown(*v) + ", but must be true or false");
  } else if (v->get<bool>() != must_be) {
    refused(key, "is " + shown(*v) + ": " + why);
  }
}

void ConfigReader::zero(const char* key, bool required, const std::string& why) {
  const json* v = find(key);
  if (!v) {
    if (required) broken(key, "is missing, and its default in the format is not 0");
  } else if (!v->is_number()) {
    broken(key, "is " + shown(*v) + ", but must be a number");
  } else if (v->get<double>() != 0) {
    refused(key, "is " + shown(*v) + ": " + why);
  }
}

void ConfigReader::forbid(const char* key, const std::string& why) {
  const json* v = find(key);
  if (!v || *v == json(false) || *v == json(0)) return;
  refused(key, "is " + shown(*v) + ": " + why);
}

void ConfigReader::unknown(std::vector<std::pair<std::string, std::string>>& out) const {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) {
      out.emplace_back(path(key), value.dump(-1, ' ', false, json::error_handler_t::replace));
    }
  }
}

}  // namespace sb
