// The command line: which commands there are, and the options they share.
#include "samebits/cli/program.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

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
#include "samebits/gate/interrupt.h"

#ifndef SB_VERSION
#define SB_VERSION "unknown"
#endif

namespace sb {
namespace {

void add_global_options(CLI::App& app, GlobalOptions& o) {
  const char* group = "Common options";
  app.add_option("--profile", o.profile, "matrix arithmetic of the run")
      ->check(CLI::IsMember({"sm90", "gfx942", "ieee"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--backend", o.backend, "where operators run")
      ->check(CLI::IsMember({"cpu", "cuda", "hip"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads, "CPU threads; 0 is all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(group);
  app.add_option("--tp", o.tp, "virtual tensor-parallel ranks")
      ->check(CLI::IsMember({1, 2, 4, 8}))
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
  add_inject_command(app, options, exit_code);
  add_contract_command(app, options, exit_code);
  add_doctor_command(app, options, exit_code);
  add_bench_command(app, options, exit_code);
  add_help_command(app, options, exit_code);
  app.footer(
      "Examples:\n"
      "  samebits demo\n"
      "  samebits model new tiny --preset tiny\n"
      "  samebits verify tiny\n"
      "  samebits compare rollout.sbt train.sbt --html report.html\n"
      "  samebits help codes");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // --help and --version arrive here too, with code 0.
    return app.exit(e) == 0 ? 0 : static_cast<int>(Code::kUsage);
  }
  if (interrupted()) return static_cast<int>(Code::kInterrupted);
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
