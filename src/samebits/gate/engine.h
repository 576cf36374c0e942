// Engine: a model opened for a run: device, threads, weights and the options every command shares.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samebits/backend/devices.h"
#include "samebits/dist/virtual_ranks.h"
#include "samebits/gate/run_header.h"

namespace sb {

struct EngineOptions {
  std::string profile = "sm90", backend = "cpu";
  int threads = 0;  // 0: all cores
  int tp = 1;
  std::vector<std::string> inject;
  std::function<bool()> interrupted;  // polled while the model loads; may be empty
  bool guard = false;  // memory that faults outside operators, for tests of the layers above ops/
};

Result<Profile> parse_profile(const std::string& name);

struct Engine {
  BackendInfo backend{};
  std::unique_ptr<Device> device;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;  // at a fixed address: sessions keep a reference
  EngineOptions options;
  Profile profile{};
  std::vector<Fault> faults;

  static Result<Engine> open(const std::string& dir, const EngineOptions& options);

  // A run with this engine's profile and faults, at the given temperature and suppressed ids.
  RunOptions run_options(const Schedule& schedule) const;
  Result<RunResult> score(const std::vector<Sequence>& sequences, const RunOptions& run);
  RunHeader header(const RunOptions& run) const;
};

}  // namespace sb
