// samebits doctor: whether this machine can run the declared arithmetic.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_doctor_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
