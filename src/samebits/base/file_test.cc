#include "samebits/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sb {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "samebits-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string get(const std::string& name) const { return read_text(path(name)).value(); }
  int64_t entries() const {
    return std::distance(fs::directory_iterator(dir_), fs::directory_iterator());
  }

  fs::path dir_;
};

TEST_F(FileTest, MapsAWholeFile) {
  put("a", std::string("x\0y", 3));
  auto map = MappedFile::open(path("a"));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->text(), std::string_view("x\0y", 3));
  MappedFile moved = std::move(*map);
  EXPECT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved.data()[2], 'y');
}

TEST_F(FileTest, AnEmptyFileMapsToNothing) {
  put("a", "");
  auto map = MappedFile::open(path("a"));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->size(), 0u);
  EXPECT_EQ(map->text(), "");
  EXPECT_EQ(read_text(path("a")).value(), "");
}

TEST_F(FileTest, WhatCannotBeMappedIsNamed) {
  for (const std::string& bad : {path("missing"), dir_.string()}) {
    auto map = MappedFile::open(bad);
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, Code::kUsage);
    EXPECT_NE(map.error().text().find(bad), std::string::npos);
  }
  EXPECT_FALSE(read_text(path("missing")));
}

TEST_F(FileTest, OutputAppearsAtCommit) {
  auto out = OutputFile::create(path("a"), false);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->write("hello "));
  ASSERT_TRUE(out->write("world"));
  EXPECT_FALSE(fs::exists(path("a")));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(get("a"), "hello world");
  EXPECT_EQ(entries(), 1) << "no temporary file stays";
}

TEST_F(FileTest, DroppedOutputLeavesNothing) {
  {
    auto out = OutputFile::create(path("a"), false);
    ASSERT_TRUE(out->write("half"));
    OutputFile moved = std::move(*out);
    ASSERT_TRUE(moved.write("more"));
  }
  EXPECT_EQ(entries(), 0);
}

TEST_F(FileTest, OverwritesOnlyByForce) {
  put("a", "old");
  auto refused = OutputFile::create(path("a"), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_NE(refused.error().remedy.find("--force"), std::string::npos);
  {
    auto dropped = OutputFile::create(path("a"), true);
    ASSERT_TRUE(dropped->write("half"));
  }
  EXPECT_EQ(get("a"), "old") << "a run that ends early keeps the old file";
  auto out = OutputFile::create(path("a"), true);
  ASSERT_TRUE(out->write("new"));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(get("a"), "new");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FileTest, OfTwoWritersOneWins) {
  auto first = OutputFile::create(path("a"), false);
  auto second = OutputFile::create(path("a"), false);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  ASSERT_TRUE(first->write("first"));
  ASSERT_TRUE(second->write("the second one"));
  ASSERT_TRUE(second->commit());
  const auto lost = first->commit();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kUsage);
  EXPECT_EQ(get("a"), "the second one");
  {
    OutputFile dropped = std::move(*first);
  }
  EXPECT_EQ(entries(), 1);
}

TEST_F(FileTest, ForceWritesThroughALink) {
  put("a", "old");
  fs::create_symlink("a", path("link"));
  auto out = OutputFile::create(path("link"), true);
  ASSERT_TRUE(out->write("new"));
  ASSERT_TRUE(out->commit());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("a"), "new");
}

TEST_F(FileTest, AnUnwritableFolderIsAnEnvironmentError) {
  auto out = OutputFile::create(path("none/a"), false);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, Code::kEnvironment);
  EXPECT_NE(out.error().text().find(path("none/a")), std::string::npos);
  put("file", "");
  EXPECT_FALSE(OutputFile::create(path("file/a"), false));
  if (geteuid() != 0) {  // root may write anywhere
    fs::create_directory(path("locked"));
    fs::permissions(path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_FALSE(OutputFile::create(path("locked/a"), false));
  }
}

TEST_F(FileTest, ADirectoryIsNotReplaced) {
  fs::create_directory(path("d"));
  for (bool force : {false, true}) {
    auto out = OutputFile::create(path("d"), force);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, Code::kUsage);
  }
}

TEST_F(FileTest, DevicesAreWrittenNotReplaced) {
  for (bool force : {false, true}) {
    auto out = OutputFile::create("/dev/null", force);
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write("gone"));
    ASSERT_TRUE(out->commit());
    struct stat st{};
    ASSERT_EQ(stat("/dev/null", &st), 0);
    ASSERT_TRUE(S_ISCHR(st.st_mode));
  }
}

TEST_F(FileTest, AFullDiskIsAnEnvironmentError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto out = OutputFile::create("/dev/full", false);
  ASSERT_TRUE(out);
  auto status = out->write("x");
  if (status) status = out->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kEnvironment);
  EXPECT_NE(status.error().text().find("/dev/full"), std::string::npos);
}

TEST(ScratchFile, IsZeroWritableAndWithoutAName) {
  const std::string beside = testing::TempDir() + "scratch_" + std::to_string(getpid());
  auto made = ScratchFile::create(beside, 10000);
  ASSERT_TRUE(made) << made.error().text();
  ScratchFile file = std::move(*made);
  ASSERT_EQ(file.bytes().size(), 10000u);
  for (const std::byte b : file.bytes()) ASSERT_EQ(b, std::byte{0});
  file.bytes()[9999] = std::byte{7};
  for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir())) {
    EXPECT_FALSE(entry.path().string().starts_with(beside)) << entry.path();
  }
  EXPECT_TRUE(ScratchFile::create(beside, 0)->bytes().empty());
}

TEST(ScratchFile, WithoutRoomItIsTheEnvironment) {
  EXPECT_EQ(ScratchFile::create("/nowhere/x", 1).error().code, Code::kEnvironment);
  const auto huge = ScratchFile::create(testing::TempDir() + "huge", size_t{1} << 60);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Code::kEnvironment);
}

}  // namespace
}  // namespace sb
