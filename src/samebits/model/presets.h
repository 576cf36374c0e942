// The synthetic models: small ones for tests, the real shape for machines that can hold it. No
// width is a power of two (√hidden would be exact and hide a wrong embedding scale), no vocabulary
// a multiple of 256, every sharded K a multiple of 128.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "samebits/model/architecture.h"

namespace sb {

struct Preset {
  std::string name, summary;
  bool virtual_by_default = false;  // too large to write without being asked
};

const std::vector<Preset>& presets();
// kUsage, listing the presets, for another name.
Result<Architecture> preset_architecture(const std::string& name);

struct NewModel {
  std::string dir, preset = "tiny";
  uint64_t seed = 0;
  std::vector<LayerType> layers;  // instead of the preset's; the last one global
  int window = 0;                 // of sliding layers, instead of the preset's; 0: that
  bool materialize = false;       // write the tensors of a preset that is virtual by default
  bool text_only_names = false;
  int64_t shard_bytes = int64_t{5} << 30;  // a file holds at least one tensor, else at most this
  bool force = false;                      // replace a checkpoint that is there
  std::function<bool()> interrupted;       // polled while tensors are written; may be empty
};

struct NewModelReport {
  int64_t tensors = 0, parameters = 0, bytes = 0;  // bytes: of tensors written
  int files = 0;
  bool is_virtual = false;
};

// Writes a checkpoint folder: config.json last, so that a killed run leaves no folder that loads. A
// run that is refused (a full disk, an interrupt) removes the files that it wrote.
Result<NewModelReport> write_synthetic(const NewModel& what);

inline constexpr const char* kVirtualFile = "samebits_virtual.json";
// The seed of a virtual checkpoint, from the text of kVirtualFile.
Result<uint64_t> parse_virtual(const std::string& json, const std::string& where);

}  // namespace sb
