// samebits compare A B: which of two runs' bits differ, where first, and what that may mean.
#include "samebits/cli/cmd_compare.h"

#include <memory>
#include <optional>

#include "samebits/cli/outputs.h"
#include "samebits/gate/compare.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

struct Args {
  std::string a, b, comparator;
  std::vector<std::string> keys, keys_a, keys_b;
  std::optional<float> temperature_a, temperature_b;
};

Result<Code> run(const Args& args, const GlobalOptions& options) {
  SB_DO(check_outputs({{"A", args.a}, {"B", args.b}}, {{"--html", options.html}}, options.force));
  CompareOptions compare;
  compare.comparator = args.comparator;
  compare.temperature_a = args.temperature_a;
  compare.temperature_b = args.temperature_b;
  for (const auto& key : args.keys) SB_DO(add_key_rename(key, compare.token_rows));
  for (const auto& key : args.keys_a) SB_DO(add_key_rename(key, compare.token_rows_a));
  for (const auto& key : args.keys_b) SB_DO(add_key_rename(key, compare.token_rows_b));
  SB_TRY(c, compare_files(args.a, args.b, compare));
  SB_DO(write_html(comparison_html(c), options));
  print(options.json ? comparison_json(c) : with_verdict_tone(comparison_text(c), c.code));
  return c.code;
}

}  // namespace

void add_compare_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand(
      "compare", "Compare two score files, external logs or traces: verdict and first drift");
  auto args = std::make_shared<Args>();
  cmd->add_option("A", args->a,
                  "rollout side: score file, token rows with logprobs, or trace; - is stdin")
      ->required();
  cmd->add_option("B", args->b, "training side")->required();
  cmd->add_option(
      "--comparator", args->comparator,
      "bits.v1 (default), or cross-profile.v1: measures runs of two profiles, never equal");
  cmd->add_option("--key", args->keys, "in external logs read OURS from THEIRS, as OURS=THEIRS")
      ->take_all()
      ->expected(1);
  cmd->add_option("--key-a", args->keys_a, "the same in A only")->take_all()->expected(1);
  cmd->add_option("--key-b", args->keys_b, "the same in B only")->take_all()->expected(1);
  cmd->add_option("--temperature-a", args->temperature_a,
                  "temperature of A, for a log that does not state it");
  cmd->add_option("--temperature-b", args->temperature_b, "the same of B");
  cmd->footer(
      "Rows are paired by id, in any file order, and tokens by position. What may not be compared\n"
      "is said before any number is: missing rows, other tokens or masks (2), other weights (3),\n"
      "another temperature, a stream shifted by one, a constant bias (4), filler or NaN (6). The\n"
      "finding is the first difference in causal order; the largest is shown beside it.\n"
      "Logs of other engines are JSON lines {\"id\",\"tokens\":[…],\"prompt_len\":n,\n"
      "\"logprobs\":[…]} with optional mask, temperature and suppress: samebits help formats.\n"
      "Exit codes: samebits help codes\n"
      "Examples:\n"
      "  samebits compare rollout.jsonl train.jsonl\n"
      "  samebits compare rollout.sbt train.sbt --html report.html\n"
      "  samebits compare vllm.jsonl megatron.jsonl --key logprobs=rollout_log_probs\n"
      "  samebits compare dump.jsonl dump.jsonl --key-a logprobs=rollout_log_probs \\\n"
      "    --key-b logprobs=log_probs\n"
      "  samebits compare log.jsonl scores.jsonl --temperature-a 0.7 --json\n"
      "  samebits compare sm90.jsonl ieee.jsonl --comparator cross-profile.v1");
  cmd->callback([args, &options, &exit_code] {
    const auto code = run(*args, options);
    exit_code = code ? static_cast<int>(*code) : report(code.error(), options);
  });
}

}  // namespace sb
