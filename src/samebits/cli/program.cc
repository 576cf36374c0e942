// The command line: which commands there are, and the options they share.
#include "samebits/cli/program.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "samebits/backend/devices.h"
#include "samebits/cli/cmd_audit.h"
#include "samebits/cli/cmd_bench.h"
#include "samebits/cli/cmd_compare.h"
#include "samebits/cli/cmd_contract.h"
#include "samebits/cli/cmd_demo.h"
#include "samebits/cli/cmd_doctor.h"
#include "samebits/cli/cmd_help.h"
#include "samebits/cli/cmd_model.h"
#include "samebits/cli/cmd_score.h"
#include "samebits/cli/cmd_verify.h"
#include "samebits/cli/console.h"
#include "samebits/cli/number_options.h"

#ifndef SB_VERSION
#define SB_VERSION "unknown"
#endif

namespace sb {
namespace {

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& b : backends()) names.push_back(b.name);
  return names;
}

void add_global_options(CLI::App& app, GlobalOptions& o) {
  const char* group = "Common options";
  app.add_option("--profile", o.profile, "matrix arithmetic of the run")
      ->check(CLI::IsMember({"sm90", "gfx942", "ieee"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--backend", o.backend, "where operators run")
      ->check(CLI::IsMember(backend_names()))
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads, "CPU threads; 0 is all cores")
      ->check(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
  app.add_option("--tp", o.tp, "virtual tensor-parallel ranks")
      ->check(CLI::IsMember(std::vector<std::string>{"1", "2", "4", "8"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--inject", o.inject, "plant a fault: NAME or NAME:layer=k; may be repeated")
      ->take_all()
      ->expected(1)
      ->group(group);
  app.add_flag("--json", o.json, "machine-readable output on standard output")->group(group);
  app.add_option("--html", o.html, "also write the report as one offline HTML file")->group(group);
  app.add_flag("--force", o.force, "replace output files that exist")->group(group);
}

// Which commands take which common options; another command would silently ignore them.
struct Takers {
  const char* option;
  std::vector<std::string> commands;
};

const std::vector<Takers>& all_takers() {
  static const std::vector<Takers> list = {
      {"--profile", {"score", "rollout", "verify", "audit", "doctor"}},
      {"--backend", {"score", "rollout", "verify", "audit", "doctor"}},
      {"--threads", {"score", "rollout", "verify", "audit", "model show", "doctor"}},
      {"--tp", {"score", "rollout", "verify", "audit"}},
      {"--inject", {"score", "rollout", "verify", "audit"}},
      {"--html", {"compare", "verify", "audit"}},
      {"--force", {"model new", "score", "rollout", "compare", "verify", "audit"}},
      {"--json",
       {"model new", "model show", "score", "rollout", "verify", "compare", "audit", "inject list",
        "contract list", "contract show", "doctor", "bench arith", "help"}},
  };
  return list;
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// "model new": the words of the command that was asked for.
std::string command_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    words.push_back(at->get_name());
  }
  return join(words, " ");
}

// Help of each command: the common options it takes, and what kind of name a text option wants.
void complete_help(CLI::App& app, const std::string& words = {}) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name =
        words.empty() ? command->get_name() : words + " " + command->get_name();
    std::vector<std::string> common;
    for (const auto& [option, commands] : all_takers()) {
      if (std::find(commands.begin(), commands.end(), name) != commands.end()) {
        common.push_back(option);
      }
    }
    if (!common.empty()) {
      command->footer("Common options it takes (samebits --help): " + join(common, " ") + "\n\n" +
                      command->get_footer());
    }
    complete_help(*command, name);
  }
  static const std::vector<std::string> files = {
      "out", "trace", "tokens", "prompts", "log", "records", "mma-golden", "html", "A", "B"};
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() != "TEXT") continue;
    const std::string name = option->get_single_name();
    if (std::find(files.begin(), files.end(), name) != files.end()) {
      option->type_name("FILE");
    } else if (option->get_positional()) {
      option->type_name(" ");
    }
  }
}

// A fault of the command line, on its way out of the parser.
struct UsageFault {
  Refusal refusal;
};

void refuse_ignored_options(const CLI::App& app) {
  const std::string command = command_of(app);
  for (const auto& [option, commands] : all_takers()) {
    if (app.get_option(option)->count() == 0) continue;
    if (std::find(commands.begin(), commands.end(), command) != commands.end()) continue;
    throw UsageFault{{Code::kUsage,
                      "samebits " + command + " " + option,
                      {command + " has no use for " + option + ", which would be ignored"},
                      "leave it out; it belongs to " + join(commands, ", ")}};
  }
}

// What the parser says, in the form of every refusal.
Refusal parser_refusal(const CLI::App& app, const CLI::ParseError& error) {
  const std::string command = command_of(app);
  std::string why = error.what();
  const auto unknown = app.remaining(true);
  if (!unknown.empty() &&
      (command.empty() || error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))) {
    why = "not known here: " + join(unknown, " ");
  }
  return {Code::kUsage,
          "samebits" + (command.empty() ? "" : " " + command),
          {why},
          command.empty() ? "samebits --help" : "samebits " + command + " --help"};
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app{
      "samebits: one declared arithmetic for rollout and training of Gemma 4, and the first place "
      "where two runs part"};
  app.name("samebits");
  app.set_version_flag("--version", "samebits " SB_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // common options may stand after the command
  app.get_formatter()->column_width(34);
  GlobalOptions options;
  int exit_code = 0;
  add_global_options(app, options);
  add_demo_command(app, options, exit_code);
  add_model_commands(app, options, exit_code);
  add_score_command(app, options, exit_code);
  add_rollout_command(app, options, exit_code);
  add_verify_command(app, options, exit_code);
  add_compare_command(app, options, exit_code);
  add_audit_command(app, options, exit_code);
  add_inject_command(app, options, exit_code);
  add_contract_command(app, options, exit_code);
  add_doctor_command(app, options, exit_code);
  add_bench_command(app, options, exit_code);
  add_help_command(app, options, exit_code);
  complete_help(app);
  app.footer(
      "Common options stand before or behind the command; one that a command has no use for is\n"
      "refused. samebits COMMAND --help has options and examples of each command.\n"
      "Verdicts are exit codes (samebits help codes); 0 is the only pass.\n"
      "Examples:\n"
      "  samebits demo\n"
      "  samebits model new tiny --preset tiny\n"
      "  samebits verify tiny\n"
      "  samebits compare vllm.jsonl megatron.jsonl\n"
      "  samebits compare rollout.sbt train.sbt --html report.html\n"
      "  samebits help codes\n"
      "  samebits help formats");
  // Runs when everything is parsed and before the command does.
  app.parse_complete_callback([&app] { refuse_ignored_options(app); });
  try {
    app.parse(argc, argv);
  } catch (const UsageFault& fault) {
    exit_code = report(fault.refusal, options);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help and --version
    // Faults may stand before --json, which is then not parsed yet.
    for (int i = 1; i < argc; ++i) options.json |= std::string_view(argv[i]) == "--json";
    exit_code = report(parser_refusal(app, e), options);
  }
  // Output that did not reach its reader is no success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    print_error("samebits: environment: standard output could not be written\n");
    return static_cast<int>(Code::kEnvironment);
  }
  return exit_code;
}

int run_program(const std::vector<std::string>& args) {
  std::vector<std::string> words = args;
  words.insert(words.begin(), "samebits");
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  return run_program(static_cast<int>(argv.size()), argv.data());
}

}  // namespace sb
