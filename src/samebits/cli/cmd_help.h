// samebits help [codes|formats|boundaries].
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_help_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
