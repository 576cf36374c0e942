#include "samebits/arith/mma_golden.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "samebits/base/file.h"

namespace sb::arith {
namespace {

const std::string kGolden = SB_SOURCE_DIR "/goldens/mma_sm90.bin";

class MmaGolden : public testing::Test {
 protected:
  void SetUp() override {
    auto text = read_text(kGolden);
    ASSERT_TRUE(text) << text.error().text();
    bytes_ = *text;
  }
  // A file of this content, removed when the test ends.
  std::string file_with(const std::string& content) {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("mma_golden_") + info->name() + std::to_string(::getpid()) + ".bin");
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }
  void expect_broken(const std::string& content) {
    const auto report = check_mma_golden(file_with(content));
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::kBrokenData) << report.error().text();
  }
  std::string bytes_;
  std::filesystem::path path_;
};

TEST_F(MmaGolden, EveryImplementationGivesTheRecordedBits) {
  const auto report = check_mma_golden(kGolden);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->trials, 279);
  EXPECT_EQ(report->outputs, 279 * 128);
  EXPECT_EQ(report->mismatches, 0);
  EXPECT_FALSE(report->first);
  EXPECT_GE(report->checked.size(), 3u);
}

TEST_F(MmaGolden, OneFlippedBitIsFound) {
  const size_t trial = 7, row = 5, col = 3, d = 512 + 256 + 512;
  const size_t at = 12 + trial * 1792 + d + 4 * (row * 8 + col);
  bytes_[at] = static_cast<char>(bytes_[at] ^ 1);
  const auto report = check_mma_golden(file_with(bytes_));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->mismatches, 1);
  ASSERT_TRUE(report->first);
  EXPECT_EQ(report->first->who, "step");
  EXPECT_EQ(report->first->trial, 7);
  EXPECT_EQ(report->first->row, 5);
  EXPECT_EQ(report->first->col, 3);
  EXPECT_EQ(report->first->expect ^ report->first->got, 1u);
}

TEST_F(MmaGolden, RefusesBadMagic) {
  bytes_[6] = '2';
  expect_broken(bytes_);
}
TEST_F(MmaGolden, RefusesATruncatedFile) { expect_broken(bytes_.substr(0, bytes_.size() - 1)); }
TEST_F(MmaGolden, RefusesATruncatedHeader) { expect_broken(bytes_.substr(0, 11)); }
TEST_F(MmaGolden, RefusesTrailingBytes) { expect_broken(bytes_ + '\0'); }
TEST_F(MmaGolden, RefusesAnEmptyFile) { expect_broken(""); }
TEST_F(MmaGolden, RefusesZeroTrials) { expect_broken(bytes_.substr(0, 8) + std::string(4, '\0')); }
TEST_F(MmaGolden, RefusesACountThatOverflowsTheSize) {
  expect_broken(bytes_.substr(0, 8) + std::string(4, '\xff') + bytes_.substr(12));
}

}  // namespace
}  // namespace sb::arith
