// Rollout: paged decode with the sampler. A row draws the same tokens alone and in company, because
// its noise depends on (seed, row id, position, id) and its logits on its own tokens.
#include <algorithm>
#include <cmath>

#include "samebits/base/digest.h"
#include "samebits/chain/plant.h"
#include "samebits/chain/score.h"
#include "samebits/chain/step_builder.h"

namespace sb {
namespace {

struct Active {
  size_t seq;
  KvCache::Handle handle;
  int64_t at = 0;  // tokens in the cache
  int64_t drawn = 0;
};

}  // namespace

Result<RolloutResult> rollout(const Model& model, Device& device, ThreadPool& pool,
                              Parallel& parallel, const std::vector<Sequence>& prompts,
                              const RolloutOptions& options) {
  if (prompts.empty()) return refuse(Code::kBrokenData, "roll out prompts", "there are none");
  SB_DO(check_ids(prompts));
  if (options.max_new < 1) {
    return refuse(Code::kUsage, "draw " + std::to_string(options.max_new) + " tokens",
                  "at least one is needed", "--max-new 16");
  }
  SessionOptions session_options = options.session;
  adapt_cache(session_options.cache, session_options.faults, ScheduleKind::kDecode);
  SB_TRY(session, Session::create(model, device, pool, parallel, session_options));
  RolloutResult result;
  result.sequences = prompts;
  result.logprobs.resize(prompts.size());
  std::vector<int64_t> lengths;
  for (auto& s : result.sequences) {
    if (s.tokens.empty())
      return refuse(Code::kBrokenData, "roll out " + s.id, "its prompt is empty");
    s.prompt_len = static_cast<int>(s.size());
    if (options.max_new > model.arch.max_position - s.size()) {
      return refuse(Code::kRefused, "roll out " + s.id,
                    std::to_string(options.max_new) + " tokens after its " +
                        std::to_string(s.size()) + " would pass the model's last position " +
                        std::to_string(model.arch.max_position - 1),
                    "a smaller --max-new");
    }
    lengths.push_back(s.size() + options.max_new);
  }
  SB_DO(session->make_cache(pages_needed(options.session.cache, lengths)));
  KvCache& cache = session->cache();
  const int64_t total = static_cast<int64_t>(prompts.size()) * options.max_new;
  int64_t drawn = 0;
  std::vector<Active> active;
  size_t joined = 0;
  for (int64_t step = 0; joined < prompts.size() || !active.empty(); ++step) {
    if (options.interrupted && options.interrupted()) {
      return refuse(Code::kInterrupted, "go on", "interrupted");
    }
    while (joined < prompts.size() && step >= static_cast<int64_t>(joined) * options.join_every) {
      SB_TRY(handle, cache.open(prompts[joined].id));
      active.push_back({joined, handle});
      ++joined;
    }
    if (active.empty()) continue;
    StepBuilder builder(result.sequences);
    DrawWork draw{options.greedy, options.seed, {}, {}};
    for (Active& a : active) {
      const Sequence& s = result.sequences[a.seq];
      const int64_t count = s.size() - a.at;
      SB_DO(cache.extend(a.handle, count));
      SB_DO(cache.check(a.handle, count));
      builder.add_for_draw(a.seq, a.at, count);
      builder.describe(cache, a.handle, count);
      plant_cache_faults(builder.batch(), options.session.faults, ScheduleKind::kDecode,
                         cache.options().page_size, a.at, count, s.prompt_len);
      draw.row_hash.push_back(xxh64(s.id));
      draw.position.push_back(static_cast<int32_t>(s.size()));
    }
    SB_TRY(head, session->step(builder.batch(), ScheduleKind::kDecode, &draw));
    result.steps += 1;
    result.tokens += builder.live_rows();
    std::vector<Active> still;
    for (size_t i = 0; i < active.size(); ++i) {
      Active& a = active[i];
      Sequence& s = result.sequences[a.seq];
      a.at = s.size();
      if (!std::isfinite(head.logp[i])) {
        return refuse(
            Code::kDrift, "roll out " + s.id,
            "the log-probability at position " + std::to_string(s.size()) + " is not finite",
            "samebits score --trace on the prompt names the first such boundary");
      }
      s.tokens.push_back(head.token[i]);
      result.logprobs[a.seq].push_back(head.logp[i]);
      ++drawn;
      const bool stop =
          std::find(options.stop.begin(), options.stop.end(), head.token[i]) != options.stop.end();
      if (stop || ++a.drawn == options.max_new) {
        drawn += options.max_new - a.drawn - (stop ? 1 : 0);
        cache.close(a.handle);
      } else {
        cache.trim(a.handle);
        still.push_back(a);
      }
    }
    active = std::move(still);
    if (options.progress) options.progress(std::min(drawn, total), total);
  }
  plant_row_shift(result.logprobs, nullptr, options.session.faults);
  result.arena_bytes = session->arena_high_water();
  result.records = session->records().lines();
  return result;
}

}  // namespace sb
