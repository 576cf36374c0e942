// The list of scenarios: nothing that verify promises to vary is missing from it.
#include "samebits/gate/scenarios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "samebits/model/presets.h"

namespace sb {
namespace {

std::vector<Scenario> all(int64_t long_row = 300) {
  return all_scenarios(preset_architecture("tiny").value(), long_row);
}

template <class F>
int64_t count(F has) {
  const auto list = all();
  return std::count_if(list.begin(), list.end(), has);
}

TEST(Scenarios, NamesAreUnique) {
  std::set<std::pair<std::string, std::string>> names;
  for (const auto& s : all()) EXPECT_TRUE(names.insert({s.group, s.name}).second) << s.name;
}

TEST(Scenarios, EveryScheduleIsRunAndTraced) {
  for (const ScheduleKind kind : {ScheduleKind::kTrain, ScheduleKind::kPrefill,
                                  ScheduleKind::kChunked, ScheduleKind::kDecode}) {
    EXPECT_GE(count([&](const Scenario& s) { return s.schedule.kind == kind; }), 2);
    EXPECT_GE(count([&](const Scenario& s) { return s.schedule.kind == kind && s.traced; }), 1);
  }
}

TEST(Scenarios, ThreadsPaddingNeighboursPrefixesAndDrawingVary) {
  for (const int threads : {1, 2, 7}) {
    EXPECT_EQ(count([&](const Scenario& s) { return s.threads == threads; }), 1);
  }
  EXPECT_GE(count([](const Scenario& s) { return s.padding_rows > 0 && !s.pad_fill.empty(); }), 3);
  EXPECT_GE(count([](const Scenario& s) { return s.other_neighbours; }), 2);
  EXPECT_GE(count([](const Scenario& s) { return s.prefix > 0; }), 3);
  EXPECT_GE(count([](const Scenario& s) { return s.join_every > 0; }), 1);
  EXPECT_EQ(count([](const Scenario& s) { return s.generate; }), 1);
}

TEST(Scenarios, CachesVaryInPagesLayoutOrderAndFill) {
  std::set<std::array<int, 2>> sizes;
  std::set<KvLayout> layouts;
  std::set<uint64_t> orders;
  std::set<int> fills;
  std::set<bool> freed;
  for (const auto& s : all()) {
    if (s.schedule.kind == ScheduleKind::kTrain) continue;
    sizes.insert(s.cache.page_size);
    layouts.insert(s.cache.layout);
    orders.insert(s.cache.order_seed);
    fills.insert(s.cache.fill);
    freed.insert(s.cache.free_window);
  }
  EXPECT_GE(sizes.size(), 5u);
  EXPECT_EQ(layouts.size(), 2u);
  EXPECT_TRUE(orders.contains(0));
  EXPECT_GE(orders.size(), 3u);
  EXPECT_GE(fills.size(), 2u);
  EXPECT_EQ(freed.size(), 2u);
}

TEST(Scenarios, TemperatureAndSuppressedIdsRunInTrainingAndInDecode) {
  for (const ScheduleKind kind : {ScheduleKind::kTrain, ScheduleKind::kDecode}) {
    EXPECT_EQ(count([&](const Scenario& s) {
                return s.schedule.kind == kind && s.meaning.temperature != 1.0f;
              }),
              1);
    EXPECT_EQ(count([&](const Scenario& s) {
                return s.schedule.kind == kind && !s.meaning.suppress.empty();
              }),
              1);
  }
  for (const auto& s : all()) {
    EXPECT_TRUE(std::is_sorted(s.meaning.suppress.begin(), s.meaning.suppress.end())) << s.name;
    for (const int32_t id : s.meaning.suppress) EXPECT_LT(id, 2500);
  }
}

TEST(Scenarios, TheLongRowRunsOnlyWhereThereIsOne) {
  EXPECT_GE(count([](const Scenario& s) { return s.long_row; }), 3);
  for (const auto& s : all(0)) EXPECT_FALSE(s.long_row) << s.name;
}

TEST(Scenarios, HybridAttentionIsAStrictSubsetWithEverySchedule) {
  std::set<ScheduleKind> kinds;
  for (const auto& s : all()) {
    if (s.hybrid) kinds.insert(s.schedule.kind);
  }
  const int64_t hybrid = count([](const Scenario& s) { return s.hybrid; });
  EXPECT_EQ(kinds.size(), 4u);
  EXPECT_GT(hybrid, 10);
  EXPECT_LT(hybrid, static_cast<int64_t>(all().size()));
}

}  // namespace
}  // namespace sb
