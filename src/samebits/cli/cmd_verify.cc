// samebits verify: the scenario matrix on one model; a table, JSON or an HTML page.
#include "samebits/cli/cmd_verify.h"

#include <memory>

#include "samebits/cli/engine_args.h"
#include "samebits/cli/outputs.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/record_gate.h"
#include "samebits/gate/score_run.h"
#include "samebits/gate/verify.h"
#include "samebits/model/load.h"

namespace sb {
namespace {

struct Args {
  std::string dir, tokens, records, suite = "all";
  bool guard = false;
};

// The provenance of an earlier run instead of new runs.
Result<Code> run_records(const Args& args, const GlobalOptions& options) {
  SB_TRY(arch, load_architecture(args.dir));
  SB_TRY(count, check_run_file(args.records, arch, options.profile, options.backend));
  print(options.json ? "{\"samebits\":\"records/1\",\"records\":" + std::to_string(count) + "}\n"
                     : args.records + ": the chain of " + std::to_string(count) +
                           " records holds, every operator ran its contract, nothing fell back\n");
  return Code::kEqual;
}

// Records are read, nothing runs: options of a run would be silently ignored.
Status check_records_alone(const Args& args, const GlobalOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--tokens", !args.tokens.empty()},
                                                {"--suite", args.suite != "all"},
                                                {"--guard", args.guard},
                                                {"--tp", options.tp != 1},
                                                {"--html", !options.html.empty()},
                                                {"--inject", !options.inject.empty()}};
  for (const auto& [flag, is] : given) {
    if (!is) continue;
    return refuse(Code::kUsage, std::string(flag) + " with --records",
                  "records of an earlier run are read and nothing runs, so it would be ignored",
                  "one of the two");
  }
  return {};
}

Result<Code> run(const Args& args, const GlobalOptions& options) {
  if (!args.records.empty()) {
    SB_DO(check_records_alone(args, options));
    return run_records(args, options);
  }
  std::vector<NamedPath> inputs = checkpoint_inputs(args.dir);
  inputs.push_back({"--tokens", args.tokens});
  SB_DO(check_outputs(inputs, {{"--html", options.html}}, options.force));
  EngineOptions engine_args = engine_options(options);
  engine_args.guard = args.guard;
  SB_TRY(engine, Engine::open(args.dir, engine_args));
  VerifyOptions verify_options;
  verify_options.suite = args.suite;
  if (!args.tokens.empty()) {
    const Architecture& arch = engine.model->arch;
    SB_TRY(rows, read_token_rows(args.tokens, arch.vocab, arch.max_position));
    SB_TRY(semantics, agree_on_semantics(rows, arch, {}, {}));
    verify_options.meaning = {semantics.temperature, semantics.suppress};
    verify_options.rows = as_sequences(rows);
  }
  say_warnings(engine);
  std::unique_ptr<Progress> progress;
  verify_options.progress = [&](const std::string&, int64_t done, int64_t total) {
    if (!progress) progress = std::make_unique<Progress>("scenarios", total);
    progress->update(done);
  };
  verify_options.interrupted = [] { return interrupted(); };
  SB_TRY(report, verify(engine, verify_options));
  progress.reset();
  SB_DO(write_html(verify_html(report), options));
  const std::string text = options.json ? verify_json(report) : verify_text(report);
  print(text);
  return report.code;
}

}  // namespace

void add_verify_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand(
      "verify",
      "Run the same rows in every way a trainer and a rollout engine would; compare bits");
  auto args = std::make_shared<Args>();
  cmd->add_option("DIR", args->dir, "checkpoint folder")->required();
  cmd->add_option("--tokens", args->tokens,
                  "token rows; default: made rows of 5 to 200 tokens and a long one");
  cmd->add_option("--suite", args->suite, "all, or hybrid-attention")->capture_default_str();
  cmd->add_option("--records", args->records,
                  "check the records in OUT.run.json of a score or rollout instead of running");
  cmd->add_flag("--guard", args->guard, "run on memory that faults outside operators");
  cmd->footer(
      "The reference is each row alone in the train schedule. Against it run, with any neighbours\n"
      "and padding: train, prefill, chunked, decode, warm prefixes, cache layouts, temperatures,\n"
      "suppressed ids. --tp N runs all of it on N ranks. Exit: 0 every bit is equal and every\n"
      "record holds · 1 bits differ; scenario, first boundary, row and position are named\n"
      "Examples:\n"
      "  samebits verify tiny\n"
      "  samebits verify tiny --profile gfx942 --html verify.html\n"
      "  samebits verify tiny --inject window-plus-1\n"
      "  samebits verify tiny --records train.jsonl.run.json\n"
      "A planted fault (--inject) sits in every scenario's arm; the reference stays clean.");
  cmd->callback([args, &options, &exit_code] {
    const auto code = run(*args, options);
    exit_code = code ? static_cast<int>(*code) : report(code.error(), options);
  });
}

}  // namespace sb
