// Where a model's tensors come from, checked by name, shape and dtype; contents are not looked at
// except where two tensors must be equal.
#include "samebits/model/source.h"

#include <cstring>

#include "samebits/model/load.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

Status check_dtype(const SafeTensor& t, const std::string& dir) {
  if (t.dtype == "BF16") return {};
  return refuse(
      Code::kRefused, "load " + dir,
      "tensor " + t.name + " has dtype " + t.dtype + "; every weight, layer_scalar too, is BF16",
      "the published bf16 checkpoint; widened or quantised weights are another model");
}

Status check_same(const Checkpoint& files, const std::string& copy, const std::string& original,
                  const std::string& why, const std::string& dir) {
  const SafeTensor &a = *files.find(copy), &b = *files.find(original);
  if (a.bytes == b.bytes && std::memcmp(files.data(a), files.data(b), a.bytes) == 0) return {};
  return refuse(Code::kBrokenData, "load " + dir,
                "tensor " + copy + " differs from " + original + "; " + why,
                "remove " + copy + " if it is stale; a model that needs both has no contract");
}

Result<CheckpointSource> map_files(const std::string& dir, const Architecture& arch,
                                   const std::vector<ExpectedTensor>& tensors) {
  CheckpointSource out;
  SB_TRY(opened, Checkpoint::open(dir));
  out.files = std::move(opened);
  const Checkpoint& files = out.files;
  std::vector<StoredTensor> stored;
  for (const SafeTensor& t : files.tensors()) {
    SB_DO(check_dtype(t, dir));
    stored.push_back({t.name, t.shape});
  }
  SB_TRY(names, match_tensors(arch, stored, dir));
  if (!names.head.empty()) {
    SB_DO(check_same(files, names.head, names.stored[tensors[0].name],
                     "the head is the embedding (tied), so a separate copy must have its bytes",
                     dir));
    out.warnings.push_back(names.head +
                           " is stored although tied; its bytes equal the embedding's");
  }
  for (const auto& [v, k] : names.shared_v) {
    SB_DO(check_same(files, v, k, "global layers use one projection for K and V", dir));
    out.warnings.push_back(v + " is stored although K = V there; its bytes equal k_proj's");
  }
  if (names.vision > 0) {
    out.warnings.push_back(std::to_string(names.vision) +
                           " vision tensors: recognised, not run yet");
  } else if (arch.has_vision) {
    out.warnings.push_back("the config describes a vision tower, the checkpoint holds none of it");
  }
  for (const auto& t : tensors) {
    out.data.push_back(files.data(*files.find(names.stored[t.name])));
  }
  return out;
}

}  // namespace

Result<Architecture> load_architecture(const std::string& dir) {
  const std::string path = dir + "/config.json";
  if (!path_exists(path)) {
    return refuse(Code::kUsage, "open the model folder " + dir,
                  path_exists(dir) ? "it holds no config.json" : "there is no such folder",
                  "the folder of a checkpoint, or `samebits model new " + dir + " --preset tiny`");
  }
  SB_TRY(text, read_text(path));
  SB_TRY(arch, parse_config(text, path));
  const std::string generation = dir + "/generation_config.json";
  if (path_exists(generation)) {
    SB_TRY(more, read_text(generation));
    SB_DO(parse_generation_config(more, generation, arch));
  }
  return arch;
}

Result<CheckpointSource> open_source(const std::string& dir, const Architecture& arch,
                                     const std::vector<ExpectedTensor>& tensors) {
  const std::string recipe = dir + "/" + kVirtualFile;
  if (!path_exists(recipe)) return map_files(dir, arch, tensors);
  if (path_exists(dir + "/model.safetensors") ||
      path_exists(dir + "/model.safetensors.index.json")) {
    return refuse(Code::kBrokenData, "load " + dir,
                  std::string("it holds both ") + kVirtualFile + " and safetensors files",
                  "remove one of the two");
  }
  CheckpointSource out;
  SB_TRY(text, read_text(recipe));
  SB_TRY(seed, parse_virtual(text, recipe));
  out.is_virtual = true;
  out.seed = seed;
  return out;
}

}  // namespace sb
