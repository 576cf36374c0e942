// samebits score and samebits rollout: run token rows or prompts through the chain and write what
// came out. Outputs appear whole or not at all; OUT.run.json beside them says how they were made.
#include "samebits/cli/cmd_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "samebits/chain/fault_reach.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/rollout_file.h"
#include "samebits/gate/score_file.h"
#include "samebits/gate/score_run.h"
#include "samebits/gate/trace_file.h"

namespace sb {
namespace {

struct ScoreArgs {
  std::string dir, tokens, schedule = "train", trace, out;
  std::optional<float> temperature;
  std::optional<std::vector<int32_t>> suppress;
  std::vector<std::string> keys;
  int page = 16, page_global = 0;
};

EngineOptions engine_options(const GlobalOptions& o) {
  return {.profile = o.profile,
          .backend = o.backend,
          .threads = o.threads,
          .tp = o.tp,
          .inject = o.inject};
}

void say_warnings(const Engine& engine) {
  for (const auto& w : engine.model->warnings) print_error("samebits: note: " + w + "\n");
  for (const auto& f : engine.faults) {
    print_error(std::string("samebits: planted fault: ") + fault_info(f.kind).name + ", first at " +
                boundary_name(fault_boundary(f, engine.model->arch)) + "\n");
  }
}

RunInfo run_info(const Engine& engine, const RunOptions& run, const std::string& command) {
  return {.command = command,
          .header = engine.header(run),
          .backend = engine.options.backend,
          .isa = isa_name(run.session.isa),
          .threads = engine.options.tp == 1 ? engine.pool->size() : 1,
          .tp = engine.options.tp};
}

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The trace is written at the end; that it cannot be is said at the beginning.
Status check_trace_path(const ScoreArgs& args, const GlobalOptions& options) {
  if (args.trace.empty()) return {};
  std::error_code unknown;
  if (args.trace == args.out && !std::filesystem::is_character_file(args.out, unknown)) {
    return refuse(Code::kUsage, "write " + args.trace, "it is both --out and --trace", "two names");
  }
  if (!options.force && std::filesystem::is_regular_file(args.trace, unknown)) {
    return refuse(Code::kUsage, "write " + args.trace, "it exists already",
                  "another --trace, or --force to replace it");
  }
  return {};
}

// One line about a finished run, or one JSON object.
void say_done(const std::string& out, size_t rows, const RunInfo& info,
              const GlobalOptions& options) {
  if (options.json) {
    const nlohmann::ordered_json j = {{"samebits", info.command + "-run/1"},
                                      {"out", out},
                                      {"rows", rows},
                                      {"tokens", info.tokens},
                                      {"steps", info.steps},
                                      {"seconds", info.seconds}};
    print(j.dump(2) + "\n");
  } else {
    print(fmt::format("{}: {} rows, {} tokens in {} steps, {:.2f} s ({:.0f} tokens/s)\n", out, rows,
                      info.tokens, info.steps, info.seconds, info.tokens / info.seconds));
  }
}

Status run_score(const ScoreArgs& args, const GlobalOptions& options) {
  SB_TRY(schedule, parse_schedule(args.schedule));
  SB_TRY(engine, Engine::open(args.dir, engine_options(options)));
  say_warnings(engine);
  const Architecture& arch = engine.model->arch;
  TokenRowOptions row_options;
  for (const auto& key : args.keys) SB_DO(add_key_rename(key, row_options));
  SB_TRY(rows, read_token_rows(args.tokens, arch.vocab, arch.max_position, row_options));
  SB_TRY(semantics, agree_on_semantics(rows, arch, args.temperature, args.suppress));
  RunOptions run = engine.run_options(schedule);
  run.session.temperature = semantics.temperature;
  run.session.suppress = semantics.suppress;
  run.session.cache.page_size = {args.page, args.page_global ? args.page_global : args.page};
  run.trace = !args.trace.empty();
  run.interrupted = [] { return interrupted(); };
  const auto sequences = as_sequences(rows);
  SB_DO(check_faults_act(arch, sequences, run));
  int64_t tokens = 0;
  for (const auto& s : sequences) tokens += s.size();
  Progress progress("tokens", tokens);
  run.progress = [&](int64_t done, int64_t) { progress.update(done); };
  // Outputs are opened first: an existing file is no reason to compute for an hour.
  SB_DO(check_trace_path(args, options));
  SB_TRY(out, ScoreWriter::create(args.out, options.force, engine.header(run)));
  const Clock clock;
  SB_TRY(result, engine.score(sequences, run));
  RunInfo info = run_info(engine, run, "score");
  info.steps = result.steps;
  info.tokens = result.tokens;
  info.seconds = clock.seconds();
  info.arena_bytes = result.arena_bytes;
  if (run.trace) {
    SB_DO(write_trace_file(args.trace, options.force,
                           view_of(*result.trace, info.header, token_digests(sequences))));
  }
  // Behind the trace: rows that are not finite are refused, and the trace shows where they came
  // from.
  for (size_t i = 0; i < rows.size(); ++i) SB_DO(out.add(rows[i], result.logprobs[i]));
  SB_DO(out.commit());
  if (args.out != "-") {
    SB_DO(write_run_json(args.out + ".run.json", true, info, result.records));
    say_done(args.out, rows.size(), info, options);
  }
  return {};
}

struct RolloutArgs {
  std::string dir, prompts, out;
  int64_t max_new = 16;
  float temperature = 1.0f;
  uint64_t seed = 0;
  bool greedy = false;
  std::vector<int32_t> stop;
  std::optional<std::vector<int32_t>> suppress;
  int page = 16, page_global = 0;
};

// Planted faults are checked on rows as long as they may become.
Status check_drawn_faults_act(const Engine& engine, std::vector<Sequence> prompts,
                              const RunOptions& run, const RolloutArgs& args) {
  if (engine.faults.empty()) return {};
  const int64_t most = engine.model->arch.max_position;
  for (auto& s : prompts) {
    s.prompt_len = static_cast<int>(s.size());
    s.tokens.resize(static_cast<size_t>(std::min(most, s.size() + args.max_new)));
  }
  return check_faults_act(engine.model->arch, prompts, run, {true, !args.stop.empty()});
}

Status run_rollout(const RolloutArgs& args, const GlobalOptions& options) {
  SB_TRY(engine, Engine::open(args.dir, engine_options(options)));
  say_warnings(engine);
  const Architecture& arch = engine.model->arch;
  SB_TRY(prompts, read_prompts(args.prompts, arch.vocab, arch.max_position));
  SB_TRY(semantics, agree_on_semantics({}, arch, args.temperature, args.suppress));
  Schedule decode;
  decode.kind = ScheduleKind::kDecode;
  RunOptions run = engine.run_options(decode);
  run.session.temperature = semantics.temperature;
  run.session.suppress = semantics.suppress;
  run.session.cache.page_size = {args.page, args.page_global ? args.page_global : args.page};
  RolloutOptions rollout;
  rollout.session = run.session;
  rollout.max_new = args.max_new;
  rollout.greedy = args.greedy;
  rollout.seed = args.seed;
  rollout.stop = args.stop;
  rollout.interrupted = [] { return interrupted(); };
  SB_DO(check_drawn_faults_act(engine, prompts, run, args));
  Progress progress("tokens", static_cast<int64_t>(prompts.size()) * args.max_new);
  rollout.progress = [&](int64_t done, int64_t) { progress.update(done); };
  SB_TRY(out, OutputFile::create(args.out, options.force));
  const Clock clock;
  SB_TRY(result,
         rollout_ranks(*engine.model, *engine.device, *engine.pool, options.tp, prompts, rollout));
  for (size_t i = 0; i < result.sequences.size(); ++i) {
    SB_DO(out.write(rollout_line(result.sequences[i], result.logprobs[i], run.session.temperature,
                                 run.session.suppress)));
  }
  SB_DO(out.commit());
  RunInfo info = run_info(engine, run, "rollout");
  info.steps = result.steps;
  info.tokens = result.tokens;
  info.seconds = clock.seconds();
  info.arena_bytes = result.arena_bytes;
  if (args.out != "-") {
    SB_DO(write_run_json(args.out + ".run.json", true, info, result.records));
    say_done(args.out, result.sequences.size(), info, options);
  }
  return {};
}

void add_page_options(CLI::App* cmd, int& page, int& page_global) {
  cmd->add_option("--page", page, "tokens a cache page")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  cmd->add_option("--page-global", page_global, "the same for global layers; default: as --page")
      ->check(CLI::Range(1, 1 << 16));
}

}  // namespace

void add_score_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("score", "Log-probabilities of token rows under one schedule");
  auto args = std::make_shared<ScoreArgs>();
  cmd->add_option("DIR", args->dir, "checkpoint folder")->required();
  cmd->add_option("--tokens", args->tokens, "token rows, JSONL; - is stdin")->required();
  cmd->add_option("--schedule", args->schedule,
                  "train, prefill, chunked:N, chunked:N,M,…, decode or decode:TAIL")
      ->capture_default_str();
  cmd->add_option("--out", args->out, "score file; - is stdout")->required();
  cmd->add_option("--trace", args->trace, "also write the digests of every boundary, X.sbt");
  cmd->add_option("--temperature", args->temperature, "default: that of the rows, else 1");
  cmd->add_option("--suppress", args->suppress, "ids that leave the softmax, comma-separated")
      ->delimiter(',');
  cmd->add_option("--key", args->keys, "read OURS from THEIRS, as OURS=THEIRS")
      ->take_all()
      ->expected(1);
  add_page_options(cmd, args->page, args->page_global);
  cmd->footer(
      "Examples:\n"
      "  samebits score tiny --tokens rows.jsonl --out train.jsonl\n"
      "  samebits score tiny --tokens rows.jsonl --schedule decode --trace d.sbt --out d.jsonl\n"
      "  samebits score tiny --tokens rows.jsonl --schedule chunked:7 --tp 4 --out c.jsonl");
  cmd->callback([args, &options, &exit_code] {
    const auto status = run_score(*args, options);
    exit_code = status ? 0 : report(status.error(), options);
  });
}

void add_rollout_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("rollout", "Generate: paged decode with the sampler");
  auto args = std::make_shared<RolloutArgs>();
  cmd->add_option("DIR", args->dir, "checkpoint folder")->required();
  cmd->add_option("--prompts", args->prompts, "JSONL of {\"id\", \"tokens\"}; - is stdin")
      ->required();
  cmd->add_option("--out", args->out, "token rows with logprobs; - is stdout")->required();
  cmd->add_option("--max-new", args->max_new, "tokens to draw a row")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  cmd->add_option("--temperature", args->temperature, "finite, above 0")->capture_default_str();
  cmd->add_option("--seed", args->seed, "of the sampler")->capture_default_str();
  cmd->add_flag("--greedy", args->greedy, "the most likely token instead of a draw");
  cmd->add_option("--stop", args->stop, "ids that end a row, comma-separated")->delimiter(',');
  cmd->add_option("--suppress", args->suppress, "ids that are never drawn, comma-separated")
      ->delimiter(',');
  add_page_options(cmd, args->page, args->page_global);
  cmd->footer(
      "top-k, top-p and penalties change the distribution behind the log-probability and are\n"
      "refused in strict runs.\n"
      "Examples:\n"
      "  samebits rollout tiny --prompts prompts.jsonl --max-new 32 --seed 7 --out rollout.jsonl\n"
      "  samebits score tiny --tokens rollout.jsonl --out train.jsonl\n"
      "  samebits compare rollout.jsonl train.jsonl");
  cmd->callback([args, &options, &exit_code] {
    const auto status = run_rollout(*args, options);
    exit_code = status ? 0 : report(status.error(), options);
  });
}

}  // namespace sb
