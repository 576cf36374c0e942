#include "samebits/gate/engine.h"

#include "samebits/backend/implementation.h"
#include "samebits/contract/contract.h"

namespace sb {

Result<Profile> parse_profile(const std::string& name) {
  for (Profile p : kProfiles) {
    if (name == profile_name(p)) return p;
  }
  return refuse(Code::kUsage, "run profile " + name, "there is no profile of this name",
                "sm90, gfx942 or ieee");
}

Result<Engine> Engine::open(const std::string& dir, const EngineOptions& options) {
  Engine e;
  e.options = options;
  SB_TRY(profile, parse_profile(options.profile));
  e.profile = profile;
  SB_TRY(backend, find_backend(options.backend));
  e.backend = backend;
  if (options.guard && backend.device != DeviceId::kCpu) {
    return refuse(Code::kUsage, "guard the memory of backend " + options.backend,
                  "only host memory can be guarded", "--guard without --backend");
  }
  if (options.tp > 1 && backend.device != DeviceId::kCpu) {
    return refuse(
        Code::kRefused,
        "run " + std::to_string(options.tp) + " virtual ranks on backend " + options.backend,
        "they are threads of one process, and a GPU's device serves one thread",
        "--tp 1, or --backend cpu");
  }
  if (options.guard) {
    e.device = make_guard_device();
  } else {
    SB_TRY(device, open_device(backend));
    e.device = std::move(device);
  }
  e.pool = std::make_unique<ThreadPool>(options.threads);
  SB_TRY(model, load_model(dir, *e.device, *e.pool, options.interrupted));
  e.model = std::make_unique<Model>(std::move(model));
  SB_TRY(plan, plan_rank(e.model->arch, 0, options.tp));
  SB_ASSERT(plan.size == options.tp, "a plan of another size");
  for (const auto& text : options.inject) {
    SB_TRY(fault, parse_fault(text, e.model->arch.num_layers()));
    for (const Fault& other : e.faults) {
      const FaultInfo &a = fault_info(other.kind), &b = fault_info(fault.kind);
      if (a.tap == b.tap && a.deviation != Deviation::kNone && b.deviation != Deviation::kNone) {
        return refuse(Code::kUsage, "inject " + text,
                      std::string("it acts in the same operator as ") + a.name +
                          ", which can deviate in one way only",
                      "one fault an operator");
      }
    }
    e.faults.push_back(fault);
  }
  return e;
}

RunOptions Engine::run_options(const Schedule& schedule) const {
  RunOptions run;
  run.session.profile = profile;
  run.session.backend = backend;
  run.session.faults = faults;
  run.schedule = schedule;
  return run;
}

Result<RunResult> Engine::score(const std::vector<Sequence>& sequences, const RunOptions& run) {
  return score_rows_ranks(*model, *device, *pool, options.tp, sequences, run);
}

RunHeader Engine::header(const RunOptions& run) const {
  return {.model = model->arch_digest,
          .weights = model->weights_digest,
          .contracts = contract_set(),
          .profile = profile_name(run.session.profile),
          .temperature = run.session.temperature,
          .suppress = run.session.suppress,
          .schedule = run.schedule.name()};
}

}  // namespace sb
