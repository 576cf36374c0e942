#include "samebits/cli/outputs.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "samebits/base/file.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

std::optional<struct stat> status_of(const std::string& path) {
  struct stat st{};
  if (path == "-" || stat(path.c_str(), &st) != 0) return {};
  return st;
}

// Two spellings of one file: the same inode, or, of files that do not exist, the same place.
bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  if (a == "-" || b == "-") return a == b;
  const auto sa = status_of(a), sb = status_of(b);
  if (sa && sb) {
    // What is written to /dev/null is no file that another output could spoil.
    return sa->st_dev == sb->st_dev && sa->st_ino == sb->st_ino && !S_ISCHR(sa->st_mode);
  }
  if (sa || sb) return false;
  std::error_code ea, eb;
  // Absolute first: of a relative path that does not exist, "./x" and "x" stay two.
  const fs::path ca = fs::weakly_canonical(fs::absolute(a), ea),
                 cb = fs::weakly_canonical(fs::absolute(b), eb);
  return !ea && !eb && ca == cb;
}

}  // namespace

Status check_outputs(const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& outputs,
                     bool force) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [flag, path] = outputs[i];
    if (path.empty()) continue;
    const std::string asked = "write " + path;
    for (const auto& input : inputs) {
      if (path != "-" && same_file(path, input.path)) {
        return refuse(
            Code::kUsage, asked,
            "it is " + flag + ", and this run reads it (" + input.flag + " " + input.path + ")",
            "another name for " + flag);
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (same_file(path, outputs[j].path)) {
        return refuse(Code::kUsage, asked, "it is both " + outputs[j].flag + " and " + flag,
                      "two names");
      }
    }
    if (path == "-") {
      if (flag == "--out") continue;
      return refuse(Code::kUsage, asked, flag + " does not go to standard output",
                    "the name of a file");
    }
    const auto st = status_of(path);
    if (st && S_ISREG(st->st_mode) && !force) {
      return refuse(Code::kUsage, asked, "it exists already",
                    "another " + flag + ", or --force to replace it");
    }
    // Opening a pipe here and closing it would end its reader.
    if (st && S_ISFIFO(st->st_mode)) continue;
    SB_TRY(probe, OutputFile::create(path, force));
  }
  return {};
}

std::vector<NamedPath> checkpoint_inputs(const std::string& dir) {
  std::vector<NamedPath> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(dir, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == "config.json" || name == "generation_config.json" || name == "tokenizer.json" ||
        name == kVirtualFile || name == "model.safetensors.index.json" ||
        name.ends_with(".safetensors")) {
      files.push_back({"the checkpoint's", it->path().string()});
    }
  }
  return files;
}

std::string run_json_path(const std::string& out) {
  const auto st = status_of(out);
  if (out == "-" || (st && !S_ISREG(st->st_mode))) return {};
  return out + ".run.json";
}

}  // namespace sb
