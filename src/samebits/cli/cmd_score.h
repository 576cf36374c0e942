// samebits score and rollout: log-probabilities of given rows, and generated rows.
#pragma once

#include <CLI/App.hpp>

#include "samebits/cli/console.h"
#include "samebits/gate/engine.h"

namespace sb {

// score DIR --tokens T.jsonl … --out S.jsonl: log-probabilities of token rows under one schedule.
void add_score_command(CLI::App& app, GlobalOptions& options, int& exit_code);

// rollout DIR --prompts P.jsonl …: paged decode with the sampler.
void add_rollout_command(CLI::App& app, GlobalOptions& options, int& exit_code);

// What a model's reader noticed, and which faults were planted, on standard error.
void say_warnings(const Engine& engine);

}  // namespace sb
