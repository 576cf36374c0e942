// The committed corpora through the harnesses, in every build; `make fuzz` goes on from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fuzz/harness.h"
#include "samebits/base/file.h"

namespace sb::fuzz {

// Names in test reports.
void PrintTo(const Harness& harness, std::ostream* out) { *out << harness.name; }

namespace {

std::vector<std::filesystem::path> corpus_of(const std::string& name) {
  const std::filesystem::path folder = std::string(SB_SOURCE_DIR) + "/fuzz/corpus/" + name;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class FuzzReplay : public testing::TestWithParam<Harness> {};

TEST_P(FuzzReplay, CorpusHoldsEveryProperty) {
  const auto files = corpus_of(GetParam().name);
  ASSERT_FALSE(files.empty()) << "no corpus for " << GetParam().name;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    const auto bytes = read_text(path);
    ASSERT_TRUE(bytes) << bytes.error().text();
    GetParam().run(*bytes);  // aborts when a property does not hold
  }
}

TEST_P(FuzzReplay, ShortInputsHoldEveryProperty) {
  GetParam().run({});
  for (int c = 0; c < 256; ++c) GetParam().run(std::string(1, static_cast<char>(c)));
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplay, testing::ValuesIn(kHarnesses),
                         [](const auto& harness) { return std::string(harness.param.name); });

// The checks of the harnesses can fail.
TEST(FuzzHarnessDeathTest, RefusalsThatSayTooLittleAbort) {
  const Refusal good{Code::kBrokenData, "read x.bin", {"it is short"}, ""};
  check_refusal(good, "x.bin");
  EXPECT_DEATH(check_refusal(good, "y.bin"), "the file is named");
  Refusal bad = good;
  bad.code = Code::kUsage;
  EXPECT_DEATH(check_refusal(bad, "x.bin"), "code of usage");
  bad = good;
  bad.reasons.clear();
  EXPECT_DEATH(check_refusal(bad, "x.bin"), "says what and why");
}

TEST(FuzzHarness, PartsAreCutAtTheirLine) {
  EXPECT_EQ(parts_of("").size(), 1u);
  const auto parts = parts_of("a\n%%%%\n\n%%%%\nb\n");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0], "a");
  EXPECT_EQ(parts[1], "");
  EXPECT_EQ(parts[2], "b\n");
}

}  // namespace
}  // namespace sb::fuzz
