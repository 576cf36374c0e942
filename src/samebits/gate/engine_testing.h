// Helpers of the tests that run whole models: checkpoints made once for a build, folders that go
// away, engines and token rows.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/base/rng.h"
#include "samebits/gate/engine.h"
#include "samebits/model/presets.h"

namespace sb::testing_engine {

namespace fs = std::filesystem;

// A checkpoint below the build folder that all tests of this program share. Its name holds the age
// of the program, so another build writes another; it appears whole, by a rename.
inline std::string shared_model(const std::string& preset = "tiny", uint64_t seed = 0) {
  struct stat self{};
  SB_ASSERT(stat("/proc/self/exe", &self) == 0, "this program has a file");
  const fs::path root = fs::path(SB_BINARY_DIR) / "test_models";
  const std::string stem = fs::read_symlink("/proc/self/exe").filename().string() + "." + preset +
                           "." + std::to_string(seed) + ".";
  const auto stamp = static_cast<uint64_t>(self.st_mtim.tv_sec) * 1000000000u +
                     static_cast<uint64_t>(self.st_mtim.tv_nsec);
  const fs::path dir = root / (stem + hex64(stamp));
  if (fs::exists(dir)) return dir.string();
  std::error_code ignored;
  fs::create_directories(root);
  for (const auto& entry : fs::directory_iterator(root)) {  // older builds'
    const std::string name = entry.path().filename().string();
    const bool older = name.starts_with(stem) && name.find(".part") == std::string::npos;
    if (older && name != dir.filename()) fs::remove_all(entry.path(), ignored);
  }
  NewModel what;
  what.dir = dir.string() + ".part" + std::to_string(getpid());
  what.preset = preset;
  what.seed = seed;
  const auto written = write_synthetic(what);
  SB_ASSERT(written, "the checkpoint of a test could not be written");
  fs::rename(what.dir, dir, ignored);
  if (ignored) fs::remove_all(what.dir);  // another test was faster
  return dir.string();
}

// A folder of this process, gone when it ends.
inline const std::string& scratch() {
  struct Folder {
    std::string path = std::string(SB_BINARY_DIR) + "/test_scratch/" + std::to_string(getpid());
    Folder() {
      fs::remove_all(path);
      fs::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

// Writes a file of that name into the scratch folder; returns its path.
inline std::string put(const std::string& name, const std::string& text) {
  const std::string path = scratch() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline Engine open_engine(const EngineOptions& options = {.threads = 2},
                          const std::string& preset = "tiny") {
  auto engine = Engine::open(shared_model(preset), options);
  if (!engine) ADD_FAILURE() << engine.error().text();
  SB_ASSERT(engine, "an engine of a test");
  return std::move(*engine);
}

inline Sequence row_of(const std::string& id, int64_t tokens, int prompt, int64_t vocab = 2500) {
  CounterRng rng(0xf00d, static_cast<uint64_t>(tokens));
  Sequence s{id, {}, prompt};
  for (int64_t i = 0; i < tokens; ++i) {
    s.tokens.push_back(8 + static_cast<int32_t>(rng.below(static_cast<uint32_t>(vocab - 9))));
  }
  return s;
}

// Rows that leave the window (24 keys), a page (16) and a block of keys (64).
inline std::vector<Sequence> few_rows() {
  return {row_of("short", 5, 1), row_of("middle", 33, 4), row_of("longer", 80, 20)};
}

inline Schedule schedule_of(const std::string& text) { return parse_schedule(text).value(); }

}  // namespace sb::testing_engine
