// Helpers of the tests that run the built program as a script would: exit code, both outputs,
// files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samebits/base/file.h"
#include "samebits/gate/engine_testing.h"

namespace sb::testing_program {

using testing_engine::put;
using testing_engine::row_of;
using testing_engine::scratch;
using testing_engine::shared_model;

struct Outcome {
  int code = -1;
  std::string out, err;
};

// `args` go through a shell, so redirections and quotes work.
inline Outcome samebits(const std::string& args, const std::string& input = "") {
  const std::string base = scratch() + "/io";
  put("io.in", input);
  const std::string command = std::string(SB_PROGRAM) + " " + args + " <" + base + ".in >" + base +
                              ".out 2>" + base + ".err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(base + ".out").value(),
          read_text(base + ".err").value()};
}

inline std::string json_row(const Sequence& s, const std::string& more = "") {
  nlohmann::ordered_json j = {{"id", s.id}, {"tokens", s.tokens}, {"prompt_len", s.prompt_len}};
  std::string text = j.dump();
  text.insert(text.size() - 1, more);
  return text + "\n";
}

// Token rows that leave the window (24 keys), a page (16) and a block (64); a file of them.
inline std::string rows_text() {
  return json_row(row_of("short", 5, 1)) + json_row(row_of("middle", 33, 4)) +
         json_row(row_of("longer", 80, 20));
}
inline std::string rows_file() { return put("rows.jsonl", rows_text()); }

inline bool exists(const std::string& path) { return std::filesystem::exists(path); }

// Files of the scratch folder whose names begin so, without those of samebits() itself.
inline std::vector<std::string> files_like(const std::string& stem) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem)) names.push_back(name);
  }
  return names;
}

// Scores the rows on the tiny model into scratch()/NAME.jsonl; returns that path.
inline std::string scored(const std::string& name, const std::string& flags) {
  const std::string out = scratch() + "/" + name + ".jsonl";
  const Outcome o = samebits("score " + shared_model() + " --tokens " + rows_file() + " --out " +
                             out + " --force " + flags);
  EXPECT_EQ(o.code, 0) << flags << "\n" << o.err;
  return out;
}

}  // namespace sb::testing_program
