// samebits audit DIR --log R.jsonl: rescore rows of a rollout log on the CPU, compare bits.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

void add_audit_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
