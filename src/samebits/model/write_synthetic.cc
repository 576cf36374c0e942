// write_synthetic: a checkpoint folder from a preset, real shards or a recipe.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "samebits/model/json_strict.h"
#include "samebits/model/presets.h"
#include "samebits/model/safetensors.h"
#include "samebits/model/synthetic.h"

namespace sb {
namespace {

using nlohmann::ordered_json;

// Files that make up a checkpoint; --force removes these and nothing else.
bool owned(const std::string& name) {
  return name == "config.json" || name == "generation_config.json" || name == kVirtualFile ||
         name == "model.safetensors.index.json" ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

Status prepare_folder(const std::string& dir, bool force) {
  if (mkdir(dir.c_str(), 0777) != 0 && errno != EEXIST) {
    return refuse(Code::kEnvironment, "create the folder " + dir, std::strerror(errno));
  }
  DIR* d = opendir(dir.c_str());
  if (!d) return refuse(Code::kUsage, "write a model into " + dir, std::strerror(errno));
  std::vector<std::string> found;
  while (const dirent* e = readdir(d)) {
    if (owned(e->d_name)) found.push_back(e->d_name);
  }
  closedir(d);
  std::sort(found.begin(),
            found.end());  // config.json goes first: a half-removed folder is no model
  if (!found.empty() && !force) {
    return refuse(Code::kUsage, "write a model into " + dir,
                  "it holds a checkpoint already: " + found[0],
                  "another folder, or --force to replace it");
  }
  for (const auto& name : found) unlink((dir + "/" + name).c_str());
  return {};
}

Status check_disk(const std::string& dir, int64_t need) {
  struct statvfs fs{};
  if (statvfs(dir.c_str(), &fs) != 0) return {};
  const uint64_t free = uint64_t{fs.f_bavail} * fs.f_frsize;
  if (free >= static_cast<uint64_t>(need)) return {};
  return refuse(Code::kEnvironment,
                "write " + std::to_string(need) + " bytes of tensors into " + dir,
                "its disk has " + std::to_string(free) + " bytes free",
                "another disk, or the virtual form (without --materialize), which needs none");
}

Status write_text(const std::string& path, const std::string& text) {
  SB_TRY(file, OutputFile::create(path, false));
  SB_DO(file.write(text));
  return file.commit();
}

// Consecutive tensors, cut so that a file stays within `limit` bytes where one tensor does.
std::vector<std::vector<ExpectedTensor>> cut_shards(std::vector<ExpectedTensor> tensors,
                                                    int64_t limit) {
  std::vector<std::vector<ExpectedTensor>> out(1);
  int64_t size = 0;
  for (auto& t : tensors) {
    const int64_t bytes = 2 * t.numel();
    if (!out.back().empty() && size + bytes > limit) {
      out.emplace_back();
      size = 0;
    }
    size += bytes;
    out.back().push_back(std::move(t));
  }
  return out;
}

Status write_shard(const std::string& path, const std::vector<ExpectedTensor>& tensors,
                   const NewModel& what) {
  auto stored = [&](const std::string& name) {
    return what.text_only_names ? text_only_name(name) : name;
  };
  std::vector<SafetensorsWriter::Entry> entries;
  for (const auto& t : tensors) entries.push_back({stored(t.name), "BF16", t.shape});
  SB_TRY(file, SafetensorsWriter::create(path, entries, false));
  std::vector<bf16> buffer(1 << 20);
  for (const auto& t : tensors) {
    const SyntheticTensor values(t, what.seed);
    for (int64_t at = 0; at < t.numel();) {
      if (what.interrupted && what.interrupted()) {
        return refuse(Code::kInterrupted, "write " + path, "interrupted");
      }
      const int64_t n = std::min<int64_t>(t.numel() - at, static_cast<int64_t>(buffer.size()));
      values.fill(buffer.data(), at, n);
      SB_DO(file.write(buffer.data(), static_cast<size_t>(n) * 2));
      at += n;
    }
  }
  return file.commit();
}

std::string shard_name(size_t i, size_t n) {
  char buf[64];
  std::snprintf(buf, sizeof buf, "model-%05zu-of-%05zu.safetensors", i + 1, n);
  return buf;
}

}  // namespace

static Result<NewModelReport> write_folder(const NewModel& what,
                                           std::vector<std::string>& written) {
  SB_TRY(arch, preset_architecture(what.preset));
  if (!what.layers.empty()) arch.layers = what.layers;
  if (what.window != 0) arch.window = what.window;
  // What a reader would refuse is not written.
  if (auto read = parse_config(write_config(arch), what.dir); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  if (what.shard_bytes < 1) {
    return refuse(Code::kUsage, "write shards of " + std::to_string(what.shard_bytes) + " bytes",
                  "a shard has at least one byte");
  }
  const auto& all = presets();
  const auto preset =
      std::find_if(all.begin(), all.end(), [&](const Preset& p) { return p.name == what.preset; });
  NewModelReport report;
  report.is_virtual = preset->virtual_by_default && !what.materialize;
  report.parameters = arch.text_parameters();
  const auto tensors = text_tensors(arch);
  report.tensors = static_cast<int64_t>(tensors.size());

  SB_DO(prepare_folder(what.dir, what.force));
  const std::string base = what.dir + "/";
  if (report.is_virtual) {
    ordered_json v;
    v["samebits"] = "virtual/1";
    v["scheme"] = SyntheticConstants::kScheme;
    v["preset"] = what.preset;
    v["seed"] = what.seed;
    SB_DO(write_text(base + kVirtualFile, v.dump(2) + "\n"));
    written.push_back(base + kVirtualFile);
  } else {
    report.bytes = 2 * report.parameters;
    SB_DO(check_disk(what.dir, report.bytes + (1 << 20)));
    const auto shards = cut_shards(tensors, what.shard_bytes);
    report.files = static_cast<int>(shards.size());
    ordered_json map = ordered_json::object();
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name =
          shards.size() == 1 ? "model.safetensors" : shard_name(i, shards.size());
      SB_DO(write_shard(base + name, shards[i], what));
      written.push_back(base + name);
      for (const auto& t : shards[i]) {
        map[what.text_only_names ? text_only_name(t.name) : t.name] = name;
      }
    }
    if (shards.size() > 1) {
      const ordered_json index = {{"metadata", {{"total_size", report.bytes}}},
                                  {"weight_map", map}};
      SB_DO(write_text(base + "model.safetensors.index.json", index.dump(2) + "\n"));
      written.push_back(base + "model.safetensors.index.json");
    }
  }
  SB_DO(write_text(base + "config.json", write_config(arch)));
  return report;
}

Result<NewModelReport> write_synthetic(const NewModel& what) {
  std::vector<std::string> written;
  auto report = write_folder(what, written);
  if (!report) {  // its own files alone: another process may write into this folder too
    for (const auto& path : written) unlink(path.c_str());
  }
  return report;
}

Result<uint64_t> parse_virtual(const std::string& text, const std::string& where) {
  SB_TRY(v, parse_json_strict(text, where));
  const std::string asked = "read " + where;
  if (!v.is_object() || v.value("samebits", nlohmann::json()) != "virtual/1") {
    return refuse(Code::kBrokenData, asked, "key samebits must be \"virtual/1\"");
  }
  if (const auto scheme = v.value("scheme", nlohmann::json());
      scheme != SyntheticConstants::kScheme) {
    return refuse(Code::kRefused, asked,
                  "scheme " + scheme.dump() + " is not " + SyntheticConstants::kScheme +
                      ": this program would make other weights",
                  "the program version that wrote the folder, or `samebits model new` again");
  }
  const auto seed = v.find("seed");
  if (seed == v.end() || !seed->is_number_unsigned()) {
    return refuse(Code::kBrokenData, asked, "key seed must be a whole number from 0 to 2^64 − 1");
  }
  return seed->get<uint64_t>();
}

}  // namespace sb
