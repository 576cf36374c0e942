#include "samebits/chain/fault_reach.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "samebits/base/bf16.h"
#include "samebits/base/bits.h"
#include "samebits/contract/rules.h"

namespace sb {
namespace {

constexpr int64_t kBlock = kGlobalAttentionRule.block_keys;

// One step of one row: tokens [begin, begin + count).
struct Step {
  int64_t begin, count;
  int live;  // rows of its batch
};

struct Reach {
  const Architecture& arch;
  const std::vector<Sequence>& rows;
  const RunOptions& run;
  const Draws& draws;

  // Some scored token depends on what happens at position `p` of its row: the last token's own row
  // has no successor to score.
  bool has_position(int64_t p) const {
    return any([&](auto& s) { return p + 1 < s.size(); });
  }
  template <class Pred>
  bool any(Pred pred) const {
    return std::any_of(rows.begin(), rows.end(), pred);
  }
  int64_t start(const Sequence& s) const {
    return run.prefix && s.size() > run.prefix ? run.prefix : 0;
  }

  // All steps of all rows that a scored token depends on, with the company each has.
  std::vector<Step> steps() const {
    std::vector<std::pair<int64_t, Step>> all;  // by number of the step
    for (size_t i = 0; i < rows.size(); ++i) {
      auto sizes = step_sizes(run.schedule, rows[i], start(rows[i]));
      if (draws.drawn) sizes.pop_back();
      int64_t at = start(rows[i]), number = static_cast<int64_t>(i) * run.join_every;
      for (const int64_t n : sizes) {
        all.push_back({number++, {at, n, 0}});
        at += n;
      }
    }
    std::map<int64_t, int> live;
    for (const auto& [number, step] : all) ++live[number];
    std::vector<Step> out;
    for (auto& [number, step] : all) out.push_back({step.begin, step.count, live[number]});
    return out;
  }
};

// Two full pages behind which a step begins, both still in the table.
bool swaps_a_page(const Reach& r) {
  for (const Sequence& s : r.rows) {
    int64_t at = r.start(s);
    for (const int64_t n : step_sizes(r.run.schedule, s, at)) {
      for (int g = 0; g < 2; ++g) {
        const int64_t page = r.run.session.cache.page_size[g], full = at / page;
        const bool sliding = LayerType(g) == LayerType::kSliding;
        const int64_t first_visible = sliding ? at - r.arch.window + 1 : 0;
        const bool has_layers =
            std::count(r.arch.layers.begin(), r.arch.layers.end(), LayerType(g));
        if (has_layers && full >= 2 && (full - 1) * page > first_visible && at + 1 < s.size()) {
          return true;
        }
      }
      at += n;
    }
  }
  return false;
}

bool stales_a_slot(const Reach& r) {
  return r.any([&](const Sequence& s) {
    return first_decoded(r.run.schedule, s, r.start(s)) + 1 < s.size();
  });
}

// A row that decodes one token alone, with a block of keys before its last.
bool drops_a_block(const Reach& r) {
  if (r.draws.stops && r.rows.size() > 1) return r.has_position(kBlock);
  const auto last = std::max_element(r.rows.begin(), r.rows.end(),
                                     [](auto& a, auto& b) { return a.size() < b.size(); });
  const auto steps = r.steps();
  return std::any_of(steps.begin(), steps.end(), [&](const Step& s) {
    return s.live == 1 && s.count == 1 && s.begin >= kBlock && s.begin + 1 < last->size();
  });
}

bool same_tables(const Architecture& arch, const Fault& fault) {
  const RopeSpecs own = rope_specs(arch), other = faulty_rope_specs(arch, {fault});
  for (int t = 0; t < 2; ++t) {
    if (own[t].theta != other[t].theta || own[t].exponent_dim != other[t].exponent_dim ||
        own[t].pairs != other[t].pairs) {
      return false;
    }
  }
  return true;
}

// What the fault lacks in this run, and what would give it to it.
struct Lack {
  std::string reason, remedy;
};
std::optional<Lack> lack_of(const Fault& fault, const Reach& r) {
  const auto row_longer_than = [&](int64_t p) -> std::optional<Lack> {
    if (r.has_position(p)) return std::nullopt;
    return Lack{"no scored token comes after position " + std::to_string(p),
                "a row of at least " + std::to_string(p + 2) + " tokens"};
  };
  const AttentionSpec& global = r.arch.global;
  switch (fault.kind) {
    case FaultKind::kWindowMinusOne: return row_longer_than(r.arch.window - 1);
    case FaultKind::kWindowPlusOne: return row_longer_than(r.arch.window);
    case FaultKind::kEmbedScaleUnrounded: {
      const float root = std::sqrt(static_cast<float>(r.arch.hidden));
      if (float_bits(rounded(root)) != float_bits(root)) return {};
      return Lack{"the root of hidden size " + std::to_string(r.arch.hidden) + " is exact in bf16",
                  "a model of another hidden size"};
    }
    case FaultKind::kSwappedPage:
      if (swaps_a_page(r)) return {};
      return Lack{"no step begins behind two full pages", "longer rows, or a smaller --page"};
    case FaultKind::kStaleSlot:
      if (stales_a_slot(r)) return {};
      return Lack{"no scored token comes after a decoded one",
                  "a row with two tokens behind its prompt, or a longer decode:TAIL"};
    case FaultKind::kKeyLeak:
      if (r.run.packed && r.rows.size() > 1) return {};
      return Lack{"no row is packed behind another", "two rows or more in one packed step"};
    case FaultKind::kDroppedLastBlock:
      if (drops_a_block(r)) return {};
      return Lack{"no row decodes alone at position " + std::to_string(kBlock) + " or beyond",
                  "one row, or rows of different lengths behind their prompts, of at least " +
                      std::to_string(kBlock + 2) + " tokens"};
    case FaultKind::kPRopePairing:
      if (global.rotary_pairs == global.head_dim / 2) {
        return Lack{"its global layers rotate the whole head", "a model with p-RoPE"};
      }
      return row_longer_than(1);
    case FaultKind::kRopeSwap:
    case FaultKind::kPRopeExponent:
      if (same_tables(r.arch, fault)) {
        return Lack{"the model's rotary parameters stay the same", "a model with p-RoPE"};
      }
      return row_longer_than(1);
    case FaultKind::kTemperatureTwice: {
      const float t = r.run.session.temperature;
      if (float_bits(t * t) != float_bits(t)) return {};
      return Lack{"the temperature is 1", "another temperature, for example --temperature 0.7"};
    }
    case FaultKind::kRowShift:
      if (r.any([](const Sequence& s) { return s.num_scored() >= 2; })) return {};
      return Lack{"no row has two scored tokens", "a row with a shorter prompt"};
    default: return {};
  }
}

}  // namespace

std::string schedule_names(uint8_t bits) {
  if (bits == kAllSchedules) return "all";
  std::string names;
  const std::pair<ScheduleKind, const char*> all[] = {{ScheduleKind::kTrain, "train"},
                                                      {ScheduleKind::kPrefill, "prefill"},
                                                      {ScheduleKind::kChunked, "chunked"},
                                                      {ScheduleKind::kDecode, "decode"}};
  for (const auto& [kind, name] : all) {
    if (bits & schedule_bit(kind)) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

Status check_fault_acts(const Fault& fault, const Architecture& arch,
                        const std::vector<Sequence>& rows, const RunOptions& run,
                        const Draws& draws) {
  const FaultInfo& info = fault_info(fault.kind);
  const std::string asked = std::string("inject ") + info.name;
  if (!(info.schedules & schedule_bit(run.schedule.kind))) {
    return refuse(
        Code::kUsage, asked,
        "it cannot act in schedule " + run.schedule.name() + ", so the run would be a clean one",
        "schedule " + schedule_names(info.schedules));
  }
  const bool lacks_layers =
      (info.layers == FaultLayers::kSliding || info.layers == FaultLayers::kGlobal) &&
      std::count(arch.layers.begin(), arch.layers.end(),
                 info.layers == FaultLayers::kSliding ? LayerType::kSliding : LayerType::kGlobal) ==
          0;
  std::optional<Lack> lack = lack_of(fault, {arch, rows, run, draws});
  if (lacks_layers) lack = {"the model has no layer of its type", "a model of both layer types"};
  if (!lack) return {};
  return refuse(Code::kRefused, asked,
                "it has nothing to act on, so the run would be a clean one: " + lack->reason,
                lack->remedy);
}

Status check_faults_act(const Architecture& arch, const std::vector<Sequence>& rows,
                        const RunOptions& run, const Draws& draws) {
  for (const Fault& fault : run.session.faults) {
    SB_DO(check_fault_acts(fault, arch, rows, run, draws));
  }
  return {};
}

}  // namespace sb
