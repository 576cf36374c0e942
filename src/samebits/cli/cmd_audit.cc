// samebits audit DIR --log R.jsonl: some rows of a log, rescored on this machine: the same bits?
#include "samebits/cli/cmd_audit.h"

#include <charconv>
#include <memory>

#include "samebits/cli/engine_args.h"
#include "samebits/cli/number_options.h"
#include "samebits/cli/outputs.h"
#include "samebits/gate/audit.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/report_text.h"
#include "samebits/model/load.h"

namespace sb {
namespace {

struct Args {
  std::string dir, log, sample = "8";
  uint64_t seed = 0;
  std::optional<float> temperature;
  std::optional<std::vector<int32_t>> suppress;
  std::vector<std::string> keys;
  bool profile_given = false;
};

// "all" or a number of at least 1.
Result<std::optional<int64_t>> parse_sample(const std::string& text) {
  if (text == "all") return std::optional<int64_t>();
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1) {
    return refuse(Code::kUsage, "--sample " + text,
                  "it is neither \"all\" nor a number of at least 1", "--sample 8");
  }
  return std::optional<int64_t>(n);
}

Result<Code> run(const Args& args, const GlobalOptions& options) {
  AuditOptions audit_options;
  SB_TRY(sample, parse_sample(args.sample));
  audit_options.sample = sample;
  audit_options.seed = args.seed;
  audit_options.temperature = args.temperature;
  audit_options.suppress = args.suppress;
  audit_options.interrupted = [] { return interrupted(); };
  std::vector<NamedPath> inputs = checkpoint_inputs(args.dir);
  inputs.push_back({"--log", args.log});
  SB_DO(check_outputs(inputs, {{"--html", options.html}}, options.force));
  TokenRowOptions row_options;
  row_options.need_logprobs = row_options.keep_bad_logprobs = true;
  for (const auto& key : args.keys) SB_DO(add_key_rename(key, row_options));
  SB_TRY(arch, load_architecture(args.dir));
  SB_TRY(log, read_token_log(args.log, arch.vocab, arch.max_position, row_options));
  EngineOptions engine_args = engine_options(options);
  if (log.header && !args.profile_given) engine_args.profile = log.header->profile;
  SB_TRY(engine, Engine::open(args.dir, engine_args));
  say_warnings(engine);
  const std::string name = args.log == "-" ? "standard input" : args.log;
  if (log.header) SB_DO(check_audit_header(*log.header, engine, name));
  std::unique_ptr<Progress> progress;
  audit_options.progress = [&](int64_t done, int64_t total) {
    if (!progress) progress = std::make_unique<Progress>("tokens rescored", total);
    progress->update(done);
  };
  SB_TRY(report, audit(engine, log, name, args.dir, audit_options));
  progress.reset();
  SB_DO(write_html(audit_html(report), options));
  print(options.json ? audit_json(report) : with_verdict_tone(audit_text(report), report.code));
  return report.code;
}

}  // namespace

void add_audit_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand(
      "audit", "Rescore rows of a rollout log on the CPU: does it hold the declared bits?");
  auto args = std::make_shared<Args>();
  cmd->add_option("DIR", args->dir, "checkpoint folder that the rollout ran")->required();
  cmd->add_option(
         "--log", args->log,
         "what samebits rollout wrote, or token rows with logprobs of another engine; - is "
         "stdin")
      ->required();
  cmd->add_option("--sample", args->sample, "how many rows are drawn, or all")
      ->capture_default_str();
  cmd->add_option("--seed", args->seed, "decides which rows are drawn")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  cmd->add_option("--temperature", args->temperature, "of rows that state none; default 1");
  cmd->add_option("--suppress", args->suppress,
                  "suppressed ids of rows that state none, comma-separated; default: the "
                  "checkpoint's")
      ->delimiter(',')
      ->check(token_id());
  cmd->add_option("--key", args->keys, "in the log read OURS from THEIRS, as OURS=THEIRS")
      ->take_all()
      ->expected(1);
  cmd->footer(
      "The log's own profile, temperature and suppressed ids are used. Each drawn row is scored\n"
      "alone in the train schedule; only drawn rows cost time. Where most of a row differs, it is\n"
      "rescored at temperature 1, at the temperature applied twice, at usual temperatures if the\n"
      "log states none, and in the other profiles; if that gives its bits, this is the finding.\n"
      "Exit: 0 every drawn bit is equal · 1 bits differ; row, token and both values are printed ·\n"
      "2 another profile or other contracts · 3 the log's weights are not DIR's · 4 another\n"
      "temperature or model · 6 no log-probabilities, or values that are none\n"
      "Examples:\n"
      "  samebits rollout mini --prompts prompts.jsonl --max-new 32 --out rollout.jsonl\n"
      "  samebits audit mini --log rollout.jsonl --sample 4 --seed 1\n"
      "  samebits audit mini --log vllm.jsonl --key logprobs=rollout_log_probs --temperature 0.7\n"
      "  samebits audit mini --log rollout.jsonl --sample all --html audit.html");
  cmd->callback([args, &app, &options, &exit_code] {
    args->profile_given = app.get_option("--profile")->count() > 0;
    const auto code = run(*args, options);
    exit_code = code ? static_cast<int>(*code) : report(code.error(), options);
  });
}

}  // namespace sb
