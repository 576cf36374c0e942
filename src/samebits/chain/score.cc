#include "samebits/chain/score.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "samebits/base/bits.h"
#include "samebits/chain/plant.h"
#include "samebits/chain/step_builder.h"

namespace sb {
namespace {

struct Runner {
  Session& session;
  const std::vector<Sequence>& sequences;
  const RunOptions& options;
  TraceTaps* taps;
  RunResult& result;
  int64_t total_tokens;

  Status run(StepBuilder& builder, ScheduleKind kind) {
    if (options.interrupted && options.interrupted()) {
      return refuse(Code::kInterrupted, "go on", "interrupted");
    }
    if (builder.empty()) return {};
    if (taps) taps->begin_step(builder.trace_rows(), builder.batch().head_rows);
    SB_TRY(head, session.step(builder.batch(), kind));
    for (size_t r = 0; r < head.logp.size(); ++r) {
      const auto& at = builder.head_rows()[r];
      const int64_t i = at.pos + 1 - sequences[at.seq].prompt_len;
      result.logprobs[at.seq][i] = head.logp[r];
    }
    result.steps += 1;
    result.tokens += builder.live_rows();
    if (options.progress) options.progress(result.tokens, total_tokens);
    return {};
  }
};

// Rows of one packed step: every sequence from position 0, padding behind each.
Status run_packed(Runner& r, const std::vector<size_t>& members) {
  StepBuilder builder(r.sequences);
  for (size_t s : members) {
    builder.add(s, 0, r.sequences[s].size(), r.options.padding_rows);
  }
  builder.set_pad_fill(r.options.pad_fill);
  return r.run(builder, ScheduleKind::kTrain);
}

struct Live {
  size_t seq;
  KvCache::Handle handle;
  std::vector<int64_t> sizes;
  int64_t first_decoded = 0;  // position of the first token that decode takes by itself
  size_t next = 0;
  int64_t at = 0;
};

std::string prefix_key(const Sequence& s, int64_t length) {
  std::string key = std::to_string(length) + ":";
  key.append(reinterpret_cast<const char*>(s.tokens.data()), length * sizeof(int32_t));
  return key;
}

// One paged step over `live`; sequences that end are closed.
Status run_paged_step(Runner& r, std::vector<Live>& live) {
  KvCache& cache = r.session.cache();
  const ScheduleKind kind = r.options.schedule.kind;
  StepBuilder builder(r.sequences);
  for (Live& l : live) {
    const int64_t n = l.sizes[l.next];
    SB_DO(cache.extend(l.handle, n));
    SB_DO(cache.check(l.handle, n));
    builder.add(l.seq, l.at, n, r.options.padding_rows);
    builder.describe(cache, l.handle, n);
    plant_cache_faults(builder.batch(), r.options.session.faults, kind, cache.options().page_size,
                       l.at, n, l.first_decoded);
  }
  builder.set_pad_fill(r.options.pad_fill);
  SB_DO(r.run(builder, kind));
  std::vector<Live> still;
  for (Live& l : live) {
    l.at += l.sizes[l.next++];
    if (l.next == l.sizes.size()) {
      cache.close(l.handle);
    } else {
      cache.trim(l.handle);
      still.push_back(std::move(l));
    }
  }
  live = std::move(still);
  return {};
}

// Prefills the first `prefix` tokens of each longer row under an owner of their own and publishes
// them.
Status warm_prefixes(Runner& r) {
  KvCache& cache = r.session.cache();
  for (size_t s = 0; s < r.sequences.size(); ++s) {
    const Sequence& seq = r.sequences[s];
    const int64_t n = r.options.prefix;
    if (seq.size() <= n) continue;
    SB_TRY(handle, cache.open("prefix of " + seq.id));
    SB_DO(cache.extend(handle, n));
    SB_DO(cache.check(handle, n));
    StepBuilder builder(r.sequences);
    builder.add(s, 0, n, 0);
    builder.describe(cache, handle, n);
    SB_DO(r.run(builder, ScheduleKind::kPrefill));
    // Two rows may share their first tokens: the first to publish serves both.
    auto published = cache.publish(handle, prefix_key(seq, n), n);
    cache.close(handle);
    if (!published && !cache.knows(prefix_key(seq, n))) return published;
  }
  return {};
}

Status run_paged(Runner& r) {
  std::vector<int64_t> lengths;
  for (const auto& s : r.sequences) {
    lengths.push_back(s.size());
    if (r.options.prefix) lengths.push_back(r.options.prefix);
  }
  SB_DO(r.session.make_cache(pages_needed(r.options.session.cache, lengths)));
  if (r.options.prefix) SB_DO(warm_prefixes(r));
  KvCache& cache = r.session.cache();
  std::vector<Live> live;
  size_t joined = 0;
  for (int64_t step = 0; joined < r.sequences.size() || !live.empty(); ++step) {
    while (joined < r.sequences.size() &&
           step >= static_cast<int64_t>(joined) * r.options.join_every) {
      const Sequence& seq = r.sequences[joined];
      SB_TRY(handle, cache.open(seq.id));
      Live l{joined, handle, {}, 0, 0, 0};
      if (r.options.prefix && seq.size() > r.options.prefix) {
        SB_DO(cache.adopt(handle, prefix_key(seq, r.options.prefix), r.options.prefix));
        l.at = r.options.prefix;
      }
      l.sizes = step_sizes(r.options.schedule, seq, l.at);
      l.first_decoded = first_decoded(r.options.schedule, seq, l.at);
      live.push_back(std::move(l));
      ++joined;
    }
    if (!live.empty()) SB_DO(run_paged_step(r, live));
  }
  return {};
}

}  // namespace

std::array<int64_t, 2> pages_needed(const KvCacheOptions& cache,
                                    const std::vector<int64_t>& lengths) {
  std::array<int64_t, 2> pages{};
  for (int g = 0; g < 2; ++g) {
    for (int64_t n : lengths) pages[g] += ceil_div(n, cache.page_size[g]);
    // Some to spare, so that not every page is in use; of large ones, as few as it takes.
    pages[g] += cache.page_size[g] <= 256 ? static_cast<int64_t>(lengths.size()) + 3 : 1;
  }
  return pages;
}

Status check_ids(const std::vector<Sequence>& sequences) {
  std::unordered_map<std::string_view, size_t> first;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto [at, fresh] = first.emplace(sequences[i].id, i);
    if (fresh) continue;
    return refuse(Code::kBrokenData, "run row " + sequences[i].id,
                  "rows " + std::to_string(at->second) + " and " + std::to_string(i) +
                      " have this id, counted from 0",
                  "an id of its own for each row");
  }
  return {};
}

Result<RunResult> score_rows(const Model& model, Device& device, ThreadPool& pool,
                             Parallel& parallel, const std::vector<Sequence>& sequences,
                             const RunOptions& options) {
  if (sequences.empty()) return refuse(Code::kBrokenData, "score token rows", "there are none");
  SB_DO(check_ids(sequences));
  SessionOptions session_options = options.session;
  adapt_cache(session_options.cache, session_options.faults, options.schedule.kind);
  SB_TRY(session, Session::create(model, device, pool, parallel, session_options));
  RunResult result;
  int64_t total = 0;
  for (const auto& s : sequences) {
    if (s.prompt_len < 1 || s.num_scored() < 1) {
      return refuse(Code::kBrokenData, "score row " + s.id, "it has no scored token",
                    "prompt_len between 1 and the number of tokens − 1");
    }
    if (s.size() > model.arch.max_position) {
      return refuse(Code::kRefused, "score row " + s.id,
                    std::to_string(s.size()) + " tokens pass the model's last position " +
                        std::to_string(model.arch.max_position - 1),
                    "shorter rows");
    }
    result.logprobs.emplace_back(static_cast<size_t>(s.num_scored()), 0.0f);
    total += s.size();
  }
  std::optional<TraceTaps> taps;
  if (options.trace) {
    taps.emplace(model.arch, sequences, options.trace_values);
    session->set_taps(&*taps);
  } else {
    session->set_taps(options.taps);
  }
  Runner runner{*session, sequences, options, taps ? &*taps : nullptr, result, total};
  if (options.schedule.kind != ScheduleKind::kTrain) {
    SB_DO(run_paged(runner));
  } else if (options.packed) {
    std::vector<size_t> all(sequences.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    SB_DO(run_packed(runner, all));
  } else {
    for (size_t i = 0; i < sequences.size(); ++i) SB_DO(run_packed(runner, {i}));
  }
  result.records = session->records().lines();
  result.arena_bytes = session->arena_high_water();
  if (taps) result.trace = taps->take();
  plant_row_shift(result.logprobs, result.trace ? &*result.trace : nullptr, options.session.faults);
  return result;
}

}  // namespace sb
