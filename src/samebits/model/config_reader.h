// ConfigReader: one JSON object of a config, read key by key. It collects every fault before it
// speaks, remembers which keys were asked for, and so knows the ones nobody understands.
// Missing or ill-typed keys are broken data; values no contract covers are refusals.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "samebits/model/architecture.h"

namespace sb {

struct ConfigFaults {
  std::vector<std::string> broken, refused;
  bool none() const { return broken.empty() && refused.empty(); }
  // The refusal that carries all of them.
  tl::unexpected<Refusal> refusal(const std::string& where) const;
};

class ConfigReader {
 public:
  // `object` must be a JSON object and outlive the reader; `path` prefixes keys in messages.
  ConfigReader(const nlohmann::json& object, std::string path, ConfigFaults& faults)
      : object_(object), path_(std::move(path)), faults_(faults) {}

  // The value, or null for an absent key or a JSON null. Marks the key as known.
  const nlohmann::json* find(const char* key);
  bool has(const char* key);

  // Required whole number in [lo, hi].
  int64_t integer(const char* key, int64_t lo, int64_t hi);
  std::optional<int64_t> optional_integer(const char* key, int64_t lo, int64_t hi);
  // Required finite number above 0.
  double positive(const char* key);
  std::string text(const char* key);
  // A flag that must have one value. An absent key counts as `absent`, or is a fault if that is
  // empty; `why` is the reason a user reads.
  void flag(const char* key, bool must_be, std::optional<bool> absent, const std::string& why);
  // A number that must be absent, null or 0.
  void zero(const char* key, bool required, const std::string& why);
  // A key whose presence with any value but null, false or 0 is refused.
  void forbid(const char* key, const std::string& why);
  // Keys that have no effect on arithmetic.
  void ignore(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }

  void broken(const std::string& key, const std::string& what);
  void refused(const std::string& key, const std::string& what);
  std::string path(const std::string& key) const { return path_ + key; }

  // Keys never asked for, with their values, added to `out`.
  void unknown(std::vector<std::pair<std::string, std::string>>& out) const;

 private:
  std::optional<int64_t> whole(const char* key, const nlohmann::json& v, int64_t lo, int64_t hi);
  const nlohmann::json& object_;
  std::string path_;
  ConfigFaults& faults_;
  std::set<std::string> known_;
};

// A JSON value for messages, shortened to about 60 characters.
std::string shown(const nlohmann::json& value);

// Parts of parse_config that have files of their own.
void refuse_features(ConfigReader& text);
void read_bidirectional(ConfigReader& text, Architecture& arch);
void read_tied(ConfigReader& text, ConfigReader* outer);  // outer: the level above text_config
void read_vision(const nlohmann::json& config, ConfigFaults& faults, Architecture& arch);
void read_rope(ConfigReader& text, ConfigFaults& faults, Architecture& arch);
void read_heads(ConfigReader& text, Architecture& arch);

}  // namespace sb
