#include "samebits/cli/doctor_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "samebits/gate/acceptance.h"
#include "samebits/gate/engine.h"
#include "samebits/gate/numbers.h"
#include "samebits/gate/report_text.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

nlohmann::ordered_json to_json(const AcceptanceReport& report, const Device& device,
                               const BackendCheck& check, const GlobalOptions& options) {
  nlohmann::ordered_json j{{"samebits", "doctor-backend/1"},
                           {"backend", options.backend},
                           {"profile", options.profile},
                           {"shapes", check.shapes},
                           {"seed", check.seed}};
  for (const auto& [name, value] : device.describe()) j["device"][name] = value;
  j["passed"] = report.passed();
  j["outputs"] = report.outputs();
  j["differing_bytes"] = report.differing();
  j["operators"] = nlohmann::ordered_json::array();
  for (const auto& l : report.lines) {
    j["operators"].push_back({{"op", l.op},
                              {"shape", l.shape},
                              {"runs", l.runs},
                              {"outputs", l.outputs},
                              {"differing_bytes", l.differing},
                              {"first", l.first},
                              {"oracle_seconds", l.oracle_seconds},
                              {"backend_seconds", l.backend_seconds}});
  }
  return j;
}

}  // namespace

Result<Code> examine_backend(const BackendCheck& check, const GlobalOptions& options) {
  SB_TRY(backend, find_backend(options.backend));
  SB_TRY(profile, parse_profile(options.profile));
  SB_TRY(arch, preset_architecture(check.shapes));
  SB_TRY(device, open_device(backend));
  ThreadPool pool(options.threads);

  AcceptanceOptions accept;
  accept.backend = backend;
  accept.profile = profile;
  accept.rows = check.rows.empty() ? std::vector<int64_t>{1, 17} : check.rows;
  accept.grid_caps = check.grid_caps.empty() ? std::vector<int64_t>{0} : check.grid_caps;
  accept.repeats = check.repeats;
  accept.cases.seed = static_cast<uint64_t>(check.seed);
  accept.cases.rows = *std::max_element(accept.rows.begin(), accept.rows.end());
  accept.cases.head_rows = check.head_rows;
  accept.cases.only = check.only;

  if (!options.json) {
    for (const auto& [name, value] : device->describe())
      print(fmt::format("{:<12} {}\n", name, value));
  }
  std::unique_ptr<Progress> progress;
  SB_TRY(report, accept_operators(arch, *device, pool, accept,
                                  [&](int64_t done, int64_t total, const AcceptanceLine&) {
                                    if (!progress) {
                                      progress = std::make_unique<Progress>("operators", total);
                                    }
                                    progress->update(done);
                                  }));
  progress.reset();
  if (options.json) {
    print(to_json(report, *device, check, options).dump(1) + "\n");
  } else {
    TextTable table({"operator", "shape", "runs", "outputs", "differ", ""});
    for (const auto& l : report.lines) {
      table.add({l.op, l.shape, grouped(l.runs), grouped(l.outputs), grouped(l.differing),
                 l.differing ? "BAD" : "ok"});
    }
    print(table.text());
    for (const auto& l : report.lines) {
      if (l.differing) print(fmt::format("{} {}: {}\n", l.op, l.shape, l.first));
    }
    print(fmt::format(
        "{}: {} outputs on backend {}, profile {}, against the oracle: {} bytes differ\n",
        report.passed() ? toned("EQUAL", Tone::kGood) : toned("DRIFT", Tone::kBad),
        grouped(report.outputs()), options.backend, options.profile, grouped(report.differing())));
  }
  if (report.outputs() == 0) return Code::kBrokenData;
  return report.passed() ? Code::kEqual : Code::kDrift;
}

}  // namespace sb
