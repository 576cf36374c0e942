#include "samebits/gate/score_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/base/file.h"
#include "samebits/base/host_memory.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/record_gate.h"
#include "samebits/gate/score_file.h"

namespace sb {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&now, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

}  // namespace

std::vector<Sequence> as_sequences(const std::vector<TokenRow>& rows) {
  std::vector<Sequence> out;
  out.reserve(rows.size());
  for (const auto& r : rows) out.push_back({r.id, r.tokens, r.prompt_len});
  return out;
}

std::vector<std::string> token_digests(const std::vector<Sequence>& sequences) {
  std::vector<std::string> out;
  for (const auto& s : sequences) out.push_back(token_digest(s.tokens));
  return out;
}

namespace {

// One value for all rows: the command line's where it speaks, else the rows'. A row that says
// nothing goes with a command line, and is no witness for what its neighbours say.
template <class T, class Field, class Same, class Text>
Status agree(const std::vector<TokenRow>& rows, const char* what, bool given,
             std::optional<T>& value, Field field, Same same, Text text) {
  const TokenRow* speaker = nullptr;
  for (const auto& row : rows) {
    const std::optional<T>& own = row.*field;
    const std::string asked = "run row " + in_quotes(row.id);
    const std::string remedy = std::string("rows of one ") + what + " at a time";
    if (given) {
      if (own && !same(*own, *value)) {
        return refuse(Code::kSemanticsDiffer, asked,
                      std::string("its ") + what + " is " + text(*own) + ", the command line's " +
                          text(*value),
                      remedy);
      }
      continue;
    }
    if (&row == &rows.front()) {
      speaker = &row;
      value = own;
      continue;
    }
    if (own.has_value() == value.has_value() && (!own || same(*own, *value))) continue;
    return refuse(Code::kSemanticsDiffer, asked,
                  std::string("its ") + what + " is " + (own ? text(*own) : "not given") +
                      ", that of row " + in_quotes(speaker->id) + " is " +
                      (value ? text(*value) : "not given"),
                  remedy + ", or --" + what + " where a row says nothing");
  }
  return {};
}

std::string ids_text(const std::vector<int32_t>& ids) {
  std::string out = "[";
  for (size_t i = 0; i < ids.size() && i < 8; ++i) out += (i ? "," : "") + std::to_string(ids[i]);
  return out + (ids.size() > 8 ? ",…]" : "]");
}

}  // namespace

Status check_vocabulary(const char* flag, const std::vector<int32_t>& ids, int64_t vocab) {
  for (int32_t id : ids) {
    if (id >= 0 && id < vocab) continue;
    return refuse(Code::kUsage, std::string(flag) + " " + std::to_string(id),
                  "the vocabulary is 0 … " + std::to_string(vocab - 1), "an id inside it");
  }
  return {};
}

Result<Semantics> agree_on_semantics(const std::vector<TokenRow>& rows, const Architecture& arch,
                                     std::optional<float> temperature,
                                     std::optional<std::vector<int32_t>> suppress) {
  if (temperature && !(std::isfinite(*temperature) && *temperature > 0)) {
    const std::string text = std::isfinite(*temperature) ? shortest(*temperature)
                             : std::isnan(*temperature)  ? "NaN"
                                                         : "infinity";
    return refuse(Code::kRefused, "run at temperature " + text, "it is not finite and above 0",
                  "--temperature 1; samebits rollout --greedy takes the most likely token");
  }
  if (suppress) {
    SB_DO(check_vocabulary("--suppress", *suppress, arch.vocab));
    std::sort(suppress->begin(), suppress->end());
    suppress->erase(std::unique(suppress->begin(), suppress->end()), suppress->end());
  }
  SB_DO(agree(
      rows, "temperature", temperature.has_value(), temperature, &TokenRow::temperature,
      [](float a, float b) { return float_bits(a) == float_bits(b); },
      [](float t) { return shortest(t); }));
  SB_DO(agree(rows, "suppress", suppress.has_value(), suppress, &TokenRow::suppress,
              std::equal_to<std::vector<int32_t>>(), ids_text));
  Semantics s;
  s.temperature = temperature.value_or(1.0f);
  if (suppress) {
    s.suppress = *suppress;
  } else {
    for (int64_t id : arch.tokens.suppress) s.suppress.push_back(static_cast<int32_t>(id));
    std::sort(s.suppress.begin(), s.suppress.end());
  }
  return s;
}

Status write_run_json(const std::string& path, bool force, const RunInfo& info,
                      const std::vector<Record>& records) {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  nlohmann::ordered_json j = {
      {"samebits", "run/1"},
      {"command", info.command},
      {"time", utc_now()},
      {"host", host},
      {"backend", info.backend},
      {"isa", info.isa},
      {"threads", info.threads},
      {"tp", info.tp},
      {"schedule", info.header.schedule},
      {"steps", info.steps},
      {"tokens", info.tokens},
      {"seconds", info.seconds},
      {"arena_bytes", info.arena_bytes},
      {"peak_bytes", peak_host_bytes()},
  };
  auto lines = nlohmann::ordered_json::array();
  for (const auto& s : seal_records(records)) lines.push_back(sealed_json(s));
  j["records"] = std::move(lines);
  SB_TRY(out, OutputFile::create(path, force));
  SB_DO(out.write(j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"));
  return out.commit();
}

}  // namespace sb
