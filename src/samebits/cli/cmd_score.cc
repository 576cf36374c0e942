// samebits score and samebits rollout: run token rows or prompts through the chain and write what
// came out. Outputs appear whole or not at all; OUT.run.json beside them says how they were made.
#include "samebits/cli/cmd_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "samebits/base/host_memory.h"
#include "samebits/chain/fault_reach.h"
#include "samebits/cli/engine_args.h"
#include "samebits/cli/number_options.h"
#include "samebits/cli/outputs.h"
#include "samebits/gate/interrupt.h"
#include "samebits/gate/rollout_file.h"
#include "samebits/gate/score_file.h"
#include "samebits/gate/score_run.h"
#include "samebits/gate/trace_file.h"
#include "samebits/gate/trace_values.h"

namespace sb {
namespace {

struct PageArgs {
  std::optional<int> page, page_global;
};

struct ScoreArgs {
  std::string dir, tokens, schedule = "train", trace, out;
  std::optional<float> temperature;
  std::optional<std::vector<int32_t>> suppress;
  std::vector<std::string> keys, trace_values;
  PageArgs pages;
};

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

// Pages of the cache; a run without a cache has no use for them.
Status set_pages(const PageArgs& args, bool paged, SessionOptions& session) {
  if (!paged && (args.page || args.page_global)) {
    return refuse(Code::kUsage, args.page ? "--page" : "--page-global",
                  "schedule train has no cache, so it would be ignored",
                  "leave it out, or --schedule decode");
  }
  const int page = args.page.value_or(16);
  session.cache.page_size = {page, args.page_global.value_or(page)};
  return {};
}

// A softmax over the whole vocabulary is what both sides can recompute from a token alone.
struct SamplingArgs {
  std::optional<std::string> top_k, top_p, min_p, penalty;
};

Status refuse_sampling(const SamplingArgs& args) {
  const std::pair<const char*, const std::optional<std::string>*> all[] = {
      {"--top-k", &args.top_k},
      {"--top-p", &args.top_p},
      {"--min-p", &args.min_p},
      {"--repetition-penalty", &args.penalty}};
  for (const auto& [flag, value] : all) {
    if (!*value) continue;
    return refuse(Code::kRefused, std::string("draw with ") + flag + " " + **value,
                  "it draws from another distribution than the one the log-probability is of, and "
                  "no contract says which ids it keeps; a trainer could not score the same token",
                  "leave it out; --temperature and --suppress are part of the contract");
  }
  return {};
}

Status check_run_outputs(NamedPath rows, const std::string& dir, const std::string& out,
                         const std::string& trace, const GlobalOptions& options) {
  std::vector<NamedPath> inputs = checkpoint_inputs(dir);
  inputs.push_back(std::move(rows));
  return check_outputs(
      inputs, {{"--out", out}, {"--out with .run.json", run_json_path(out)}, {"--trace", trace}},
      options.force);
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
                                      {"seconds", info.seconds},
                                      {"peak_bytes", peak_host_bytes()}};
    print(j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    print(fmt::format(
        "{}: {} rows, {} tokens in {} steps, {:.2f} s ({:.0f} tokens/s), {} MiB at most\n", out,
        rows, info.tokens, info.steps, info.seconds, info.tokens / info.seconds,
        peak_host_bytes() >> 20));
  }
}

Status run_score(const ScoreArgs& args, const GlobalOptions& options) {
  SB_TRY(schedule, parse_schedule(args.schedule));
  RunOptions asked;
  SB_DO(set_pages(args.pages, schedule.kind != ScheduleKind::kTrain, asked.session));
  TokenRowOptions row_options;
  for (const auto& key : args.keys) SB_DO(add_key_rename(key, row_options));
  // Outputs are checked first: an existing file is no reason to compute for an hour.
  SB_DO(check_run_outputs({"--tokens", args.tokens}, args.dir, args.out, args.trace, options));
  SB_TRY(engine, Engine::open(args.dir, engine_options(options)));
  say_warnings(engine);
  const Architecture& arch = engine.model->arch;
  SB_TRY(rows, read_token_rows(args.tokens, arch.vocab, arch.max_position, row_options));
  SB_TRY(semantics, agree_on_semantics(rows, arch, args.temperature, args.suppress));
  RunOptions run = engine.run_options(schedule);
  run.session.temperature = semantics.temperature;
  run.session.suppress = semantics.suppress;
  run.session.cache.page_size = asked.session.cache.page_size;
  run.trace = !args.trace.empty();
  run.interrupted = [] { return interrupted(); };
  const auto sequences = as_sequences(rows);
  SB_DO(check_faults_act(arch, sequences, run));
  int64_t tokens = 0;
  for (const auto& s : sequences) tokens += s.size();
  Progress progress("tokens", tokens);
  run.progress = [&](int64_t done, int64_t) { progress.update(done); };
  const std::string run_json = run_json_path(args.out);
  SB_TRY(store, make_value_store(arch, sequences, args.trace_values, args.trace));
  if (!store.values.empty()) {
    print_error(fmt::format("samebits: note: the trace will hold {:.1f} MB of values at {} {}\n",
                            static_cast<double>(store.bytes) / 1e6, store.values.size(),
                            store.values.size() == 1 ? "boundary" : "boundaries"));
  }
  run.trace_values = store.values;
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
    if (!run_json.empty()) SB_DO(write_run_json(run_json, options.force, info, result.records));
    say_done(args.out, rows.size(), info, options);
  }
  return {};
}

struct RolloutArgs {
  std::string dir, prompts, out;
  int64_t max_new = 16;
  float temperature = 1.0f;
  std::optional<uint64_t> seed;
  bool greedy = false;
  std::vector<int32_t> stop;
  std::optional<std::vector<int32_t>> suppress;
  PageArgs pages;
  SamplingArgs sampling;
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
  SB_DO(refuse_sampling(args.sampling));
  if (args.greedy && args.seed) {
    return refuse(Code::kUsage, "--seed with --greedy",
                  "nothing is drawn, so the seed would be ignored", "one of the two");
  }
  SB_DO(check_run_outputs({"--prompts", args.prompts}, args.dir, args.out, "", options));
  SB_TRY(engine, Engine::open(args.dir, engine_options(options)));
  say_warnings(engine);
  const Architecture& arch = engine.model->arch;
  SB_TRY(prompts, read_prompts(args.prompts, arch.vocab, arch.max_position));
  SB_DO(check_vocabulary("--stop", args.stop, arch.vocab));
  SB_TRY(semantics, agree_on_semantics({}, arch, args.temperature, args.suppress));
  Schedule decode;
  decode.kind = ScheduleKind::kDecode;
  RunOptions run = engine.run_options(decode);
  run.session.temperature = semantics.temperature;
  run.session.suppress = semantics.suppress;
  SB_DO(set_pages(args.pages, true, run.session));
  RolloutOptions rollout;
  rollout.session = run.session;
  rollout.max_new = args.max_new;
  rollout.greedy = args.greedy;
  rollout.seed = args.seed.value_or(0);
  rollout.stop = args.stop;
  rollout.interrupted = [] { return interrupted(); };
  SB_DO(check_drawn_faults_act(engine, prompts, run, args));
  Progress progress("tokens", static_cast<int64_t>(prompts.size()) * args.max_new);
  rollout.progress = [&](int64_t done, int64_t) { progress.update(done); };
  const std::string run_json = run_json_path(args.out);
  SB_TRY(out, OutputFile::create(args.out, options.force));
  SB_DO(out.write(rollout_header_line(engine.header(run))));
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
    if (!run_json.empty()) SB_DO(write_run_json(run_json, options.force, info, result.records));
    say_done(args.out, result.sequences.size(), info, options);
  }
  return {};
}

void add_page_options(CLI::App* cmd, PageArgs& pages) {
  cmd->add_option("--page", pages.page, "tokens a cache page; default 16")
      ->check(whole_number(1, 1 << 16));
  cmd->add_option("--page-global", pages.page_global,
                  "the same for global layers; default: as --page")
      ->check(whole_number(1, 1 << 16));
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
  CLI::Option* trace =
      cmd->add_option("--trace", args->trace, "also write the digests of every boundary, X.sbt");
  cmd->add_option("--trace-values", args->trace_values,
                  "keep the values of these boundaries in it, e.g. layers.*.out,head.logit")
      ->delimiter(',')
      ->needs(trace);
  cmd->add_option("--temperature", args->temperature, "default: that of the rows, else 1");
  cmd->add_option("--suppress", args->suppress, "ids that leave the softmax, comma-separated")
      ->delimiter(',')
      ->check(token_id());
  cmd->add_option("--key", args->keys, "read OURS from THEIRS, as OURS=THEIRS")
      ->take_all()
      ->expected(1);
  add_page_options(cmd, args->pages);
  cmd->footer(
      "Schedules, which cost different time and give the same bits:\n"
      "  train        all rows in one packed step, without a cache\n"
      "  prefill      each row in one step into pages of the cache\n"
      "  chunked:N    N tokens of a row a step; chunked:N,M,… N, M, … in turn\n"
      "  decode       the prompt in one step, then one token a step; decode:TAIL: the last TAIL\n"
      "Beside FILE stands FILE.run.json: host, time, backend and records, which verify --records\n"
      "checks. Files: samebits help formats. Exit: 0 when scored; samebits help codes\n"
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
      ->check(whole_number(1, uint64_t{1} << 31))
      ->capture_default_str();
  cmd->add_option("--temperature", args->temperature, "finite, above 0")->capture_default_str();
  cmd->add_option("--seed", args->seed, "of the sampler; default 0")
      ->check(whole_number(0, UINT64_MAX));
  cmd->add_flag("--greedy", args->greedy, "the most likely token instead of a draw");
  cmd->add_option("--stop", args->stop, "ids that end a row, comma-separated")
      ->delimiter(',')
      ->check(token_id());
  cmd->add_option("--suppress", args->suppress, "ids that are never drawn, comma-separated")
      ->delimiter(',')
      ->check(token_id());
  add_page_options(cmd, args->pages);
  // Known, so that they are refused with the reason; not listed.
  cmd->add_option("--top-k", args->sampling.top_k)->group("");
  cmd->add_option("--top-p", args->sampling.top_p)->group("");
  cmd->add_option("--min-p", args->sampling.min_p)->group("");
  cmd->add_option("--repetition-penalty", args->sampling.penalty)->group("");
  cmd->footer(
      "Draws depend on seed, row id and position alone, so on no neighbour and no order of rows.\n"
      "top-k, top-p and penalties change the distribution behind the log-probability and are\n"
      "refused. The file is read by score, compare and audit: samebits help formats\n"
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
