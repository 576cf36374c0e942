// samebits contract list | show ID, and samebits inject list.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_contract_command(CLI::App& app, GlobalOptions& options, int& exit_code);
void add_inject_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
