// Checkpoint::open: which files of a folder are the checkpoint, and which tensor lies in which.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "samebits/model/json_strict.h"
#include "samebits/model/safetensors.h"

namespace sb {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// A shard must be a plain file name: an index must not reach outside its folder.
bool plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
}

// tensor → shard, as the index says.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  SB_TRY(text, read_text(path));
  SB_TRY(index, parse_json_strict(text, path));
  const std::string asked = "read " + path;
  const auto map = index.find("weight_map");
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    return refuse(Code::kBrokenData, asked, "key weight_map must be an object from tensor to file");
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !plain_name(file.get<std::string>())) {
      return refuse(Code::kBrokenData, asked,
                    "weight_map sends tensor " + name + " to " + file.dump() +
                        "; a shard is a file name inside the checkpoint folder");
    }
    out[name] = file.get<std::string>();
  }
  return out;
}

}  // namespace

const SafeTensor* Checkpoint::find(const std::string& name) const {
  const auto it =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const SafeTensor& t, const std::string& n) { return t.name < n; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

Result<Checkpoint> Checkpoint::open(const std::string& dir) {
  Checkpoint out;
  const std::string asked = "open the checkpoint " + dir;
  const std::string single = dir + "/" + kSingle, index_path = dir + "/" + kIndex;
  const bool has_single = path_exists(single), has_index = path_exists(index_path);
  if (!has_single && !has_index) {
    return refuse(Code::kUsage, asked,
                  std::string("it holds neither ") + kSingle + " nor " + kIndex,
                  "the folder of a safetensors checkpoint, or `samebits model new`");
  }
  std::map<std::string, std::string> index;
  if (has_index) {
    SB_TRY(map, read_index(index_path));
    index = std::move(map);
    for (const auto& [tensor, file] : index) out.names_.push_back(file);
    std::sort(out.names_.begin(), out.names_.end());
    out.names_.erase(std::unique(out.names_.begin(), out.names_.end()), out.names_.end());
    if (has_single && !std::binary_search(out.names_.begin(), out.names_.end(), kSingle)) {
      return refuse(Code::kBrokenData, asked,
                    std::string("it holds ") + kSingle +
                        " beside an index that does not name it; "
                        "tools disagree on which of the two counts",
                    "remove the one that is stale");
    }
    std::vector<std::string> absent;
    for (const auto& name : out.names_) {
      if (!path_exists(dir + "/" + name)) absent.push_back(name);
    }
    if (!absent.empty()) {
      std::string list;
      for (size_t i = 0; i < absent.size(); ++i) list += (i ? ", " : "") + absent[i];
      return refuse(Code::kBrokenData, asked,
                    std::string(kIndex) + " names " + std::to_string(absent.size()) + " of " +
                        std::to_string(out.names_.size()) + " shards that are not there: " + list,
                    "download the missing files");
    }
  } else {
    out.names_ = {kSingle};
  }

  for (size_t i = 0; i < out.names_.size(); ++i) {
    const std::string path = dir + "/" + out.names_[i];
    SB_TRY(map, MappedFile::open(path));
    SB_TRY(tensors, parse_safetensors(map.text(), path));
    for (auto& t : tensors) {
      t.file = static_cast<int>(i);
      out.tensors_.push_back(std::move(t));
    }
    out.files_.push_back(std::move(map));
  }
  std::sort(out.tensors_.begin(), out.tensors_.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::tie(a.name, a.file) < std::tie(b.name, b.file);
  });

  for (size_t i = 1; i < out.tensors_.size(); ++i) {
    const SafeTensor &a = out.tensors_[i - 1], &b = out.tensors_[i];
    if (a.name == b.name) {
      return refuse(Code::kBrokenData, asked,
                    "tensor " + a.name + " is in two shards: " + out.names_[a.file] + " and " +
                        out.names_[b.file]);
    }
  }
  if (!has_index) return out;
  for (const SafeTensor& t : out.tensors_) {
    const auto it = index.find(t.name);
    if (it == index.end() || it->second != out.names_[t.file]) {
      return refuse(Code::kBrokenData, asked,
                    "tensor " + t.name + " lies in " + out.names_[t.file] +
                        ", but the index says " +
                        (it == index.end() ? std::string("nothing of it") : it->second));
    }
  }
  std::vector<std::string> absent;
  for (const auto& [name, file] : index) {
    if (!out.find(name)) absent.push_back(name + " (" + file + ")");
  }
  if (!absent.empty()) {
    return refuse(Code::kBrokenData, asked,
                  "the index names " + std::to_string(absent.size()) +
                      " tensors their shards do not hold, first " + absent[0]);
  }
  return out;
}

}  // namespace sb
