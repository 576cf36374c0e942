#include "samebits/gate/scenarios.h"

#include <algorithm>

#include "samebits/base/rng.h"

namespace sb {
namespace {

constexpr uint16_t kNan = 0x7fc0, kTenThousand = 0x461c;  // bf16 bits; 0x461c is 9984

Schedule chunked(std::vector<int64_t> cuts) { return {ScheduleKind::kChunked, std::move(cuts), 0}; }
Schedule prefill() { return {ScheduleKind::kPrefill, {}, 0}; }
Schedule decode(int64_t tail = 0) { return {ScheduleKind::kDecode, {}, tail}; }

std::vector<int64_t> random_cuts() {
  CounterRng rng(20260713);
  std::vector<int64_t> cuts;
  for (int i = 0; i < 9; ++i) cuts.push_back(1 + rng.below(40));
  return cuts;
}

class Builder {
 public:
  Scenario& add(std::string group, std::string name, Schedule schedule, bool hybrid = false) {
    Scenario s;
    s.group = std::move(group);
    s.name = std::move(name);
    s.schedule = std::move(schedule);
    s.hybrid = hybrid;
    s.cache.order_seed = 7;
    all_.push_back(std::move(s));
    return all_.back();
  }
  std::vector<Scenario> take() { return std::move(all_); }

 private:
  std::vector<Scenario> all_;
};

void add_training(Builder& b) {
  b.add("train", "packed", {}, true).traced = true;
  Scenario& neighbours = b.add("train", "packed, other neighbours", {}, true);
  neighbours.other_neighbours = true;
  Scenario& nan = b.add("train", "packed, padding rows NaN", {}, true);
  nan.padding_rows = 3;
  nan.pad_fill = {kNan};
  Scenario& large = b.add("train", "packed, padding rows 1e4", {});
  large.padding_rows = 5;
  large.pad_fill = {kTenThousand};
  b.add("train", "packed, again", {});
  for (int threads : {1, 2, 7}) {
    Scenario& s = b.add("train", "packed, " + std::to_string(threads) + " threads", {});
    s.threads = threads;
  }
}

void add_rollout(Builder& b) {
  b.add("prefill", "whole rows", prefill(), true).traced = true;
  for (int64_t n : {1, 7, 16, 63, 64, 65}) {
    b.add("chunked", "chunks of " + std::to_string(n), chunked({n}), true).traced = n == 7;
  }
  b.add("chunked", "random cuts", chunked(random_cuts()), true);
  Scenario& pad = b.add("chunked", "chunks of 16, padding rows NaN", chunked({16}));
  pad.padding_rows = 3;
  pad.pad_fill = {kNan};
  Scenario& joining = b.add("decode", "from the prompt, rows join and leave", decode(), true);
  joining.join_every = 3;
  joining.traced = true;
  Scenario& others = b.add("decode", "other neighbours", decode());
  others.other_neighbours = true;
  // Few steps: what becomes of padding is mostly NaN, which the CPU's matrix steps take slowly.
  Scenario& padded = b.add("decode", "the last 24, padding rows 1e4", decode(24));
  padded.padding_rows = 1;
  padded.pad_fill = {kTenThousand};
  Scenario& generate = b.add("decode", "generated, then rescored", decode());
  generate.generate = true;
  generate.join_every = 2;  // also when it is run again to find a boundary
  for (int64_t n : {0, 16, 64, 128}) {
    Scenario& s = b.add("prefix", "warm prefix of " + std::to_string(n), prefill(), true);
    s.prefix = n;
  }
}

void add_cache(Builder& b) {
  const std::array<int, 2> sizes[] = {{16, 64}, {64, 16}, {128, 16}, {16, 128}};
  for (const auto& size : sizes) {
    for (const auto layout : {KvLayout::kSplit, KvLayout::kInterleaved}) {
      // Every size runs, and every layout with two of them.
      if ((size[0] < size[1]) == (layout == KvLayout::kInterleaved)) continue;
      Scenario& s =
          b.add("cache",
                "pages of " + std::to_string(size[0]) + " and " + std::to_string(size[1]) +
                    (layout == KvLayout::kSplit ? ", [pages,2,page,H,D]" : ", [pages,H,page,2D]"),
                chunked({33}), true);
      s.cache.page_size = size;
      s.cache.layout = layout;
      s.cache.order_seed = 11;
    }
  }
  Scenario& ascending = b.add("cache", "pages in order", chunked({64}), true);
  ascending.cache.order_seed = 0;
  Scenario& keep = b.add("cache", "window pages kept", decode(60), true);
  keep.cache.free_window = false;
  Scenario& stale = b.add("cache", "unused slots 1e38", chunked({48}), true);
  stale.cache.fill = 0x7e;  // bf16 0x7e7e = 8.5e37
}

void add_semantics(Builder& b, const Architecture& arch) {
  const Meaning warm{0.7f, {}};
  Meaning without{1.0f, {0, 1, 7}};
  without.suppress.push_back(static_cast<int32_t>(arch.vocab - 1));
  for (const Schedule& schedule : {Schedule{}, decode(40)}) {
    const char* how = schedule.kind == ScheduleKind::kTrain ? ", train" : ", decode";
    b.add("semantics", std::string("temperature 0.7") + how, schedule).meaning = warm;
    b.add("semantics", std::string("suppressed ids") + how, schedule).meaning = without;
  }
}

void add_long(Builder& b, int64_t tokens) {
  const std::string row = std::to_string(tokens) + " tokens, ";
  b.add("long", row + "packed", {}, true).long_row = true;
  b.add("long", row + "prefill", prefill(), true).long_row = true;
  b.add("long", row + "chunks of 511", chunked({511}), true).long_row = true;
  b.add("long", row + "decode of the last 80", decode(80), true).long_row = true;
  b.add("long", row + "packed, again", {}).long_row = true;
}

}  // namespace

std::vector<Scenario> all_scenarios(const Architecture& arch, int64_t long_row) {
  Builder b;
  add_training(b);
  add_rollout(b);
  add_cache(b);
  add_semantics(b, arch);
  if (long_row > 0) add_long(b, long_row);
  return b.take();
}

}  // namespace sb
