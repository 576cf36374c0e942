#include "samebits/cli/engine_args.h"

#include "samebits/gate/interrupt.h"

namespace sb {

EngineOptions engine_options(const GlobalOptions& o) {
  return {.profile = o.profile,
          .backend = o.backend,
          .threads = o.threads,
          .tp = o.tp,
          .inject = o.inject,
          .interrupted = [] { return interrupted(); }};
}

void say_warnings(const Engine& engine) {
  for (const auto& w : engine.model->warnings) print_error("samebits: note: " + w + "\n");
  for (const auto& f : engine.faults) {
    print_error(std::string("samebits: planted fault: ") + fault_info(f.kind).name + ", first at " +
                boundary_name(fault_boundary(f, engine.model->arch)) + "\n");
  }
}

}  // namespace sb
