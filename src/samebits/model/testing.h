// Helpers of the model tests: fixtures, temporary folders, checkpoints to damage.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "samebits/model/load.h"
#include "samebits/model/presets.h"

namespace sb::testing_model {

inline std::string fixture(const std::string& name) {
  auto text = read_text(std::string(SB_SOURCE_DIR) + "/tests/fixtures/model/" + name + ".json");
  EXPECT_TRUE(text) << "fixture " << name;
  return text ? *text : std::string();
}

// An empty folder of its own for the running test.
inline std::string fresh_dir(const std::string& tag = "m") {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string dir = testing::TempDir() + "sb_" + std::to_string(getpid()) + "_" +
                          info->test_suite_name() + "_" + info->name() + "_" + tag;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string make_model(const std::string& preset,
                              const std::function<void(NewModel&)>& with = {},
                              const std::string& tag = "m") {
  NewModel n;
  n.dir = fresh_dir(tag);
  n.preset = preset;
  if (with) with(n);
  auto r = write_synthetic(n);
  EXPECT_TRUE(r) << (r ? "" : r.error().text());
  return n.dir;
}

struct RawTensor {
  std::string dtype = "BF16";
  std::vector<int64_t> shape;
  std::string bytes;
};
using RawTensors = std::map<std::string, RawTensor>;

inline RawTensors read_raw(const std::string& dir) {
  RawTensors out;
  auto c = Checkpoint::open(dir);
  EXPECT_TRUE(c) << (c ? "" : c.error().text());
  if (!c) return out;
  for (const auto& t : c->tensors()) {
    out[t.name] = {t.dtype, t.shape,
                   std::string(reinterpret_cast<const char*>(c->data(t)), t.bytes)};
  }
  return out;
}

inline void write_raw(const std::string& path, const RawTensors& tensors) {
  std::vector<SafetensorsWriter::Entry> entries;
  for (const auto& [name, t] : tensors) entries.push_back({name, t.dtype, t.shape});
  auto w = SafetensorsWriter::create(path, entries, true);
  ASSERT_TRUE(w) << w.error().text();
  for (const auto& [name, t] : tensors) ASSERT_TRUE(w->write(t.bytes.data(), t.bytes.size()));
  ASSERT_TRUE(w->commit());
}

// A tiny model whose tensors went through `damage`.
inline std::string damaged(const std::function<void(RawTensors&)>& damage) {
  const std::string dir = make_model("tiny");
  RawTensors raw = read_raw(dir);
  damage(raw);
  write_raw(dir + "/model.safetensors", raw);
  return dir;
}

inline Result<Model> load(const std::string& dir, int threads = 1) {
  static auto device = make_cpu_device();
  ThreadPool pool(threads);
  return load_model(dir, *device, pool);
}

// The message and code of a load that must fail; empty if it did not.
inline std::string load_error(const std::string& dir, Code code) {
  auto m = load(dir);
  EXPECT_FALSE(m) << "loaded although damaged";
  if (m) return {};
  EXPECT_EQ(m.error().code, code) << m.error().text();
  return m.error().text();
}

inline const std::string kLayer = "model.language_model.layers.";

}  // namespace sb::testing_model
