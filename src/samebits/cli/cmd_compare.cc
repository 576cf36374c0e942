// samebits compare A B: which of two runs' bits differ, where first, and what that may mean.
#include "samebits/cli/cmd_compare.h"

#include <memory>

#include "samebits/gate/compare.h"
#include "samebits/gate/report_text.h"

namespace sb {
namespace {

struct Args {
  std::string a, b, comparator;
  std::vector<std::string> keys;
};

// The verdict takes colour; the rest of the report stays plain.
std::string with_tone(const std::string& text, Code code) {
  const std::string word = verdict_word(code);
  return toned(word, tone_of(code)) + text.substr(word.size());
}

Result<Code> run(const Args& args, const GlobalOptions& options) {
  CompareOptions compare;
  compare.comparator = args.comparator;
  for (const auto& key : args.keys) SB_DO(add_key_rename(key, compare.token_rows));
  SB_TRY(c, compare_files(args.a, args.b, compare));
  SB_DO(write_html(comparison_html(c), options));
  print(options.json ? comparison_json(c) : with_tone(comparison_text(c), c.code));
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
  cmd->footer(
      "Examples:\n"
      "  samebits compare rollout.jsonl train.jsonl\n"
      "  samebits compare rollout.sbt train.sbt --html report.html\n"
      "  samebits compare log.jsonl scores.jsonl --key logprobs=rollout_log_probs --json\n"
      "Exit codes: samebits help codes");
  cmd->callback([args, &options, &exit_code] {
    const auto code = run(*args, options);
    exit_code = code ? static_cast<int>(*code) : report(code.error(), options);
  });
}

}  // namespace sb
