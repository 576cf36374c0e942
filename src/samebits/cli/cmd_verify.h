// samebits verify: the scenario matrix on one model.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

// verify DIR [--tokens T.jsonl] [--suite all|hybrid-attention]: the scenario matrix.
void add_verify_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
