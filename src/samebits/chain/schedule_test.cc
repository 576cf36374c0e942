// Schedules: what their names mean, and that every cut of a row covers it exactly once.
#include "samebits/chain/schedule.h"

#include <gtest/gtest.h>

#include <numeric>

#include "samebits/chain/testing.h"

namespace sb {
namespace {

using chain_testing::ran;
using chain_testing::refused;
using chain_testing::row;

TEST(Schedule, NamesReadBackToTheSameSchedule) {
  for (const char* name : {"train", "prefill", "chunked:7", "chunked:3,1,9",
                           "chunked:9223372036854775807", "decode", "decode:80"}) {
    const auto s = parse_schedule(name);
    ASSERT_TRUE(ran(s)) << name;
    EXPECT_EQ(s->name(), name);
  }
}

TEST(Schedule, PartsOfANameBecomeParts) {
  EXPECT_EQ(parse_schedule("train")->kind, ScheduleKind::kTrain);
  EXPECT_EQ(parse_schedule("prefill")->kind, ScheduleKind::kPrefill);
  const Schedule chunked = *parse_schedule("chunked:3,1,9");
  EXPECT_EQ(chunked.kind, ScheduleKind::kChunked);
  EXPECT_EQ(chunked.cuts, (std::vector<int64_t>{3, 1, 9}));
  EXPECT_EQ(parse_schedule("decode:80")->tail, 80);
  EXPECT_EQ(parse_schedule("decode")->tail, 0);
}

TEST(Schedule, WrongTextIsRefusedAsUsage) {
  for (const char* text : {"", "training", "Train", "train:1", "prefill:2", "chunked", "decode:3,4",
                           " train", "chunk:7"}) {
    EXPECT_TRUE(refused(parse_schedule(text), "there is no schedule of this name", Code::kUsage))
        << text;
  }
  for (const char* text :
       {"chunked:", "chunked:0", "chunked:-3", "chunked:7,", "chunked:,7", "chunked:7,,8",
        "chunked:7;8", "chunked:7.5", "chunked:+7", "chunked: 7", "chunked:1e3",
        "chunked:9223372036854775808", "decode:", "decode:0", "decode:x"}) {
    EXPECT_TRUE(
        refused(parse_schedule(text), "is not a list of positive token counts", Code::kUsage))
        << text;
  }
}

std::vector<int64_t> sizes(const std::string& schedule, int64_t n, int prompt, int64_t start = 0) {
  return step_sizes(*parse_schedule(schedule), row("r", n, prompt, 1), start);
}
using Sizes = std::vector<int64_t>;

TEST(Schedule, StepsAreCutAsTheNameSays) {
  EXPECT_EQ(sizes("prefill", 10, 4), (Sizes{10}));
  EXPECT_EQ(sizes("chunked:4", 10, 4), (Sizes{4, 4, 2}));
  EXPECT_EQ(sizes("chunked:3,1", 10, 4), (Sizes{3, 1, 3, 1, 2}));
  EXPECT_EQ(sizes("chunked:9223372036854775807", 10, 4), (Sizes{10}));
  EXPECT_EQ(sizes("decode", 7, 4), (Sizes{4, 1, 1, 1}));
  EXPECT_EQ(sizes("decode:2", 7, 4), (Sizes{5, 1, 1}));
  EXPECT_EQ(sizes("decode:80", 4, 2), (Sizes{1, 1, 1, 1}));  // at least one token is a prompt
}

TEST(Schedule, StepsStartBehindAPrefix) {
  EXPECT_EQ(sizes("prefill", 10, 4, 6), (Sizes{4}));
  EXPECT_EQ(sizes("chunked:4", 10, 4, 3), (Sizes{4, 3}));
  EXPECT_EQ(sizes("decode", 7, 4, 2), (Sizes{2, 1, 1, 1}));
  EXPECT_EQ(sizes("decode", 7, 4, 5), (Sizes{1, 1}));  // the prefix reaches into the answer
  EXPECT_EQ(sizes("prefill", 10, 4, 10), (Sizes{}));
}

TEST(Schedule, EveryCutCoversTheRowOnce) {
  for (const char* name :
       {"prefill", "chunked:1", "chunked:7", "chunked:5,1,30", "decode", "decode:1", "decode:9"}) {
    for (int64_t n : {2, 9, 64, 65}) {
      for (int64_t start : {0, 1, 8}) {
        if (start >= n) continue;
        const Sizes all = sizes(name, n, 1, start);
        EXPECT_EQ(std::accumulate(all.begin(), all.end(), int64_t{0}), n - start) << name;
        for (int64_t s : all) EXPECT_GE(s, 1) << name;
      }
    }
  }
}

}  // namespace
}  // namespace sb
