// samebits demo: an equal run and a planted fault found, under a minute.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_demo_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
