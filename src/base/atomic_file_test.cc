// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/result.h"

namespace dynosim {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  static std::string Content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::ptrdiff_t FileCount() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  std::filesystem::path directory_;
};

TEST_F(AtomicFileTest, WritesAndReplaces) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "one"));
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "two, longer"));
  EXPECT_EQ(Content(Path("a")), "two, longer");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, BesideLeavesWhatIsThere) {
  const auto write = [&](const std::string& text) {
    Result<AtomicFile> file = AtomicFile::Create(Path("a.json"));
    file->Append(text);
    return file->CommitBeside().value_or("failed");
  };
  EXPECT_EQ(write("one"), Path("a.json"));
  EXPECT_EQ(write("two"), Path("a_2.json"));
  EXPECT_EQ(write("three"), Path("a_3.json"));
  EXPECT_EQ(Content(Path("a.json")) + Content(Path("a_2.json")) + Content(Path("a_3.json")),
            "onetwothree");
  EXPECT_EQ(FileCount(), 3);
}

TEST_F(AtomicFileTest, CreatesMissingParents) {
  ASSERT_TRUE(WriteFileAtomically(Path("x/y/z"), "deep"));
  EXPECT_EQ(Content(Path("x/y/z")), "deep");
}

TEST_F(AtomicFileTest, ManyAppendsKeepTheirOrder) {
  auto file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file);
  std::string expected;
  for (int i = 0; i < 100000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    file->Append(line);
    expected += line;
  }
  const std::string large(1 << 20, 'L');
  file->Append(large);
  file->Append("end");
  ASSERT_TRUE(file->Commit());
  EXPECT_EQ(Content(Path("a")), expected + large + "end");
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStaysAndNothingIsLeft) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old"));
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file);
    file->Append(std::string(1 << 20, 'n'));
    EXPECT_EQ(FileCount(), 2);
  }
  EXPECT_EQ(Content(Path("a")), "old");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, WhenTheDiskRefusesMoreBytesTheOldFileStays) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old"));
  // A limit on file sizes fails a write in the middle, as a full disk does.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1 << 19, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = WriteFileAtomically(Path("a"), std::string(1 << 21, 'n'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(result.error().where, Path("a"));
  EXPECT_TRUE(result.error().message.starts_with("cannot be written: "));
  EXPECT_EQ(Content(Path("a")), "old");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, FullDeviceIsAnError) {
  const auto result = WriteFileAtomically("/dev/full", "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "cannot be written: No space left on device");
  EXPECT_TRUE(WriteFileAtomically("/dev/null", "x"));
}

TEST_F(AtomicFileTest, DirectoriesAreRefusedBeforeAnythingIsWritten) {
  EXPECT_EQ(AtomicFile::Create(directory_.string()).error().message,
            "is a directory, a file is needed");
  EXPECT_EQ(AtomicFile::Create(Path("new/")).error().message, "is a directory, a file is needed");
  EXPECT_FALSE(AtomicFile::Create(""));
  ASSERT_TRUE(WriteFileAtomically(Path("file"), ""));
  EXPECT_FALSE(AtomicFile::Create(Path("file/inside")));
}

TEST_F(AtomicFileTest, ModeIsKeptAndLinksAreFollowed) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old"));
  ASSERT_EQ(chmod(Path("a").c_str(), 0640), 0);
  std::filesystem::create_symlink("a", Path("link"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(Content(Path("a")), "new");
  struct stat status{};
  ASSERT_EQ(stat(Path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

}  // namespace
}  // namespace dynosim
