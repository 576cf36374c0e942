// samebits bench arith: speed of the matrix-step kernels of this CPU.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_bench_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
