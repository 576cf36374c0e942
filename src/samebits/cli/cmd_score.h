// samebits score and rollout: log-probabilities of given rows, and generated rows.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"

namespace sb {

// score DIR --tokens T.jsonl … --out S.jsonl: log-probabilities of token rows under one schedule.
void add_score_command(CLI::App& app, GlobalOptions& options, int& exit_code);

// rollout DIR --prompts P.jsonl …: paged decode with the sampler.
void add_rollout_command(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
