#include "samebits/gate/score_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "samebits/base/bits.h"
#include "samebits/base/file.h"
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

Result<Semantics> agree_on_semantics(const std::vector<TokenRow>& rows, const Architecture& arch,
                                     std::optional<float> temperature,
                                     std::optional<std::vector<int32_t>> suppress) {
  if (temperature && !(std::isfinite(*temperature) && *temperature > 0)) {
    return refuse(Code::kRefused, "run at temperature " + std::to_string(*temperature),
                  "it is not finite and above 0", "--temperature 1, or --greedy to draw the best");
  }
  if (suppress) {
    std::sort(suppress->begin(), suppress->end());
    suppress->erase(std::unique(suppress->begin(), suppress->end()), suppress->end());
  }
  const auto speaker = [](bool given) { return given ? "the command line" : "an earlier row"; };
  const std::string temperature_of = speaker(temperature.has_value());
  const std::string suppress_of = speaker(suppress.has_value());
  for (const auto& row : rows) {
    if (row.temperature) {
      if (temperature && float_bits(*temperature) != float_bits(*row.temperature)) {
        return refuse(Code::kSemanticsDiffer, "score row " + row.id,
                      "it was sampled at temperature " + std::to_string(*row.temperature) + ", " +
                          temperature_of + " says " + std::to_string(*temperature),
                      "score rows of one temperature at a time");
      }
      temperature = row.temperature;
    }
    if (row.suppress) {
      if (suppress && *suppress != *row.suppress) {
        return refuse(Code::kSemanticsDiffer, "score row " + row.id,
                      "its suppressed ids are not those of " + suppress_of,
                      "score rows with one list of suppressed ids at a time");
      }
      suppress = row.suppress;
    }
  }
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
  };
  auto lines = nlohmann::ordered_json::array();
  for (const auto& s : seal_records(records)) lines.push_back(sealed_json(s));
  j["records"] = std::move(lines);
  SB_TRY(out, OutputFile::create(path, force));
  SB_DO(out.write(j.dump(1) + "\n"));
  return out.commit();
}

}  // namespace sb
