// samebits compare: two score files or traces, and what made them differ.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_compare_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
