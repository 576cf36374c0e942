// What a command line may write: checked before anything runs, so that an hour of work is not lost
// to a name, and no output lands on an input or on another output, however the two are spelled.
#pragma once

#include <string>
#include <vector>

#include "samebits/base/result.h"

namespace sb {

struct NamedPath {
  std::string flag;  // as typed, "--out"; or what the file is
  std::string path;  // "": not given
};

// kUsage: an output that exists (without `force`), that is an input, another output, a folder, or
// "-" where it is not --out. kEnvironment: a folder that cannot be written. Leaves no file behind.
Status check_outputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs,
                     bool force);

// The files of a checkpoint folder that a run reads, as inputs.
std::vector<NamedPath> checkpoint_inputs(const std::string& dir);

// OUT.run.json; "" where the output is standard output, a pipe or a device.
std::string run_json_path(const std::string& out);

}  // namespace sb
