// samebits demo: the main job on an embedded model, as a person would type it. Each command is
// shown and then really run; the demo fails if an equal run is not equal or the fault is not found
// where it was planted.
#include "samebits/cli/cmd_demo.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "samebits/base/file.h"
#include "samebits/cli/program.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/interrupt.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrompts =
    R"({"id":"a","tokens":[2,105,2364,107,818,1567,529,2033,563]}
{"id":"b","tokens":[2,105,2364,107,1567]}
{"id":"c","tokens":[2,105,2364,107,236,1018,8,90,2033,77,1203,45,1999,310,2211,17]}
{"id":"d","tokens":[2,9]}
)";
constexpr const char* kFault = "window-plus-1";
constexpr const char* kFaultBoundary = "layers.0.attn.ctx";

struct Step {
  const char* title;
  std::vector<std::vector<std::string>> commands;
  int expect = 0;
};

std::vector<Step> script() {
  return {
      {"A small Gemma 4 model with synthetic weights",
       {{"model", "new", "tiny", "--preset", "tiny"}}},
      {"A rollout engine draws tokens (paged decode); a trainer scores them (packed rows)",
       {{"rollout", "tiny", "--prompts", "prompts.jsonl", "--max-new", "48", "--seed", "7", "--out",
         "rollout.jsonl"},
        {"score", "tiny", "--tokens", "rollout.jsonl", "--schedule", "train", "--trace",
         "train.sbt", "--out", "train.jsonl"}}},
      {"Both came to the same bits", {{"compare", "rollout.jsonl", "train.jsonl"}}},
      {"And so does every other way to run the rows", {{"verify", "tiny"}}},
      {"Now the rollout engine has a fault: its sliding layers see one key too many",
       {{"score", "tiny", "--tokens", "rollout.jsonl", "--schedule", "decode", "--inject", kFault,
         "--trace", "suspect.sbt", "--out", "suspect.jsonl"}}},
      {"The log-probabilities drift", {{"compare", "suspect.jsonl", "train.jsonl"}}, 1},
      {"Where do the two runs part?", {{"compare", "suspect.sbt", "train.sbt"}}, 1},
  };
}

Status run_steps() {
  SB_TRY(prompts, OutputFile::create("prompts.jsonl", true));
  SB_DO(prompts.write(kPrompts));
  SB_DO(prompts.commit());
  for (const auto& step : script()) {
    print("\n" + toned(std::string("# ") + step.title, Tone::kBold) + "\n");
    for (const auto& command : step.commands) {
      if (interrupted()) return stopped("go on with the demo");
      std::string line = "$ samebits";
      for (const auto& word : command) line += " " + word;
      print(toned(line, Tone::kDim) + "\n");
      std::fflush(stdout);
      const int code = run_program(command);
      if (code != step.expect) {
        return refuse(code == 0 ? Code::kDrift : static_cast<Code>(code), "run the demo",
                      line + " ended with " + std::to_string(code) + ", expected " +
                          std::to_string(step.expect));
      }
    }
  }
  SB_TRY(found, compare_files("suspect.sbt", "train.sbt"));
  if (!found.first || found.first->boundary != kFaultBoundary) {
    return refuse(
        Code::kDrift, "run the demo",
        std::string("the fault was planted at ") + kFaultBoundary + " and found elsewhere");
  }
  print(std::string("\nThe fault was planted at ") + kFaultBoundary + " and found there.\n");
  return {};
}

// Runs in a folder of its own: a temporary one that goes away, or `keep`.
Status run_demo(const std::string& keep) {
  std::error_code error;
  const fs::path before = fs::current_path(error);
  fs::path dir = keep;
  if (keep.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "samebits-demo-XXXXXX").string();
    if (error || !mkdtemp(pattern.data())) {
      return refuse(Code::kEnvironment, "make a temporary folder for the demo",
                    std::strerror(errno), "samebits demo --keep DIR");
    }
    dir = pattern;
  } else if (!fs::create_directories(dir, error)) {
    return refuse(error ? Code::kEnvironment : Code::kUsage, "keep the demo in " + keep,
                  error ? error.message() : "the folder exists already", "a new folder");
  }
  fs::current_path(dir, error);
  if (error) return refuse(Code::kEnvironment, "enter " + dir.string(), error.message());
  const Status status = run_steps();
  fs::current_path(before, error);
  if (keep.empty()) {
    fs::remove_all(dir, error);
  } else {
    print("Files are in " + keep + "\n");
  }
  return status;
}

}  // namespace

void add_demo_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd =
      app.add_subcommand("demo", "An equal run, and a planted fault found, under a minute");
  auto keep = std::make_shared<std::string>();
  cmd->add_option("--keep", *keep, "a new folder in which the demo's files stay");
  cmd->footer(
      "Shows each command and runs it, in a temporary folder. Exit: 0 if the equal run is equal "
      "and\n"
      "the fault is found where it was planted\n"
      "Examples:\n  samebits demo\n  samebits demo --keep demo");
  cmd->callback([keep, &options, &exit_code] {
    const auto status = run_demo(*keep);
    exit_code = status ? 0 : report(status.error(), options);
  });
}

}  // namespace sb
