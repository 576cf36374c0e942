// CheckpointSource: the opened files of a checkpoint folder, or the recipe of a virtual one.
#pragma once

#include <string>
#include <vector>

#include "samebits/model/safetensors.h"
#include "samebits/model/tensor_names.h"

namespace sb {

struct CheckpointSource {
  Checkpoint files;
  std::vector<const unsigned char*> data;  // of text_tensors(arch), in that order; empty if virtual
  bool is_virtual = false;
  uint64_t seed = 0;  // of a virtual checkpoint
  std::vector<std::string> warnings;
};

// `tensors` are text_tensors(arch). Refuses missing, unknown, misshapen and non-bf16 tensors, and a
// stored head or shared v_proj that is no copy.
Result<CheckpointSource> open_source(const std::string& dir, const Architecture& arch,
                                     const std::vector<ExpectedTensor>& tensors);

}  // namespace sb
