// samebits model new | show: synthetic checkpoints, and what a checkpoint is.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "samebits/cli/console.h"
#include "samebits/model/presets.h"

namespace sb {

struct ModelNewOptions {
  NewModel model;
  std::string prefix = "model.language_model.";  // of the tensor names written; or "model."
  std::vector<std::string> layers;               // "sliding" or "global" each; empty: the preset's
  std::string shard_size = "5GB";                // "600kB", "5GB", "4GiB", or bytes
  GlobalOptions global;
};

struct ModelShowOptions {
  std::string path;      // a checkpoint folder, or a config.json by itself
  bool weights = false;  // read every value: digest and finiteness
  GlobalOptions global;
};

// Each prints its result and returns the exit code.
int cmd_model_new(const ModelNewOptions& options);
int cmd_model_show(const ModelShowOptions& options);

// "5GB" as bytes; kUsage for anything else.
Result<int64_t> parse_size(const std::string& text);

void add_model_commands(CLI::App& app, GlobalOptions& options, int& exit_code);

}  // namespace sb
