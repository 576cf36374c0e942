// How commands that run a model open it, and what they say of it before they run.
#pragma once

#include "samebits/cli/console.h"
#include "samebits/gate/engine.h"

namespace sb {

// The common options as the engine takes them; Ctrl-C is polled while weights are read.
EngineOptions engine_options(const GlobalOptions& options);

// What a model's reader noticed, and which faults were planted, on standard error.
void say_warnings(const Engine& engine);

}  // namespace sb
