// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zconf.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/text_stream.h"

namespace dynosim {
namespace {

std::string Gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

class TextFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(std::string_view content) {
    const std::string path = (directory_ / "input").string();
    std::ofstream(path, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return path;
  }
  std::string Text(std::string_view content, TextLimits limits = {}) {
    const auto file = TextFile::Read(Write(content), limits);
    return file ? std::string(file->Text()) : "error: " + file.error().message;
  }

  std::filesystem::path directory_;
};

TEST_F(TextFileTest, PlainFileIsItsBytes) {
  EXPECT_EQ(Text("a\r\nb"), "a\r\nb");
  EXPECT_EQ(Text(""), "");
  EXPECT_EQ(Text(std::string_view("\0x", 2)), std::string("\0x", 2));
}

TEST_F(TextFileTest, PaddingIsReadableAndZeroForEverySizeNearAPage) {
  for (std::size_t size = 4096 - 70; size <= 4096 + 2; ++size) {
    const auto file = TextFile::Read(Write(std::string(size, 'x')));
    ASSERT_TRUE(file);
    ASSERT_EQ(file->Text().size(), size);
    for (std::size_t i = 0; i < TextFile::kPadding; ++i) {
      ASSERT_EQ(file->Text().data()[size + i], '\0');
    }
  }
}

TEST_F(TextFileTest, GzipAndZstdAreRecognisedByContentInAnyNumberOfParts) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  EXPECT_EQ(Text(Gzip(text)), text);
  EXPECT_EQ(Text(Gzip(text) + Gzip("tail")), text + "tail");
  EXPECT_EQ(Text(Zstd(text)), text);
  EXPECT_EQ(Text(Zstd(text) + Zstd("tail")), text + "tail");
  EXPECT_EQ(Text(Gzip("")), "");
}

TEST_F(TextFileTest, ByteOrderMarkIsSkippedAlsoInsidePackedFiles) {
  EXPECT_EQ(Text("\xEF\xBB\xBFx"), "x");
  EXPECT_EQ(Text(Gzip("\xEF\xBB\xBFx")), "x");
  EXPECT_EQ(Text("x\xEF\xBB\xBF"), "x\xEF\xBB\xBF");
}

TEST_F(TextFileTest, DamagedPackedFilesAreErrors) {
  const std::string gzip = Gzip("some text that is long enough to be cut");
  EXPECT_EQ(Text(gzip.substr(0, gzip.size() - 9)), "error: gzip data is cut off");
  EXPECT_EQ(Text(gzip + "rest"), "error: gzip data is followed by other bytes");
  std::string flipped = gzip;
  flipped[gzip.size() - 8] = static_cast<char>(flipped[gzip.size() - 8] ^ 1);
  EXPECT_EQ(Text(flipped), "error: gzip data is damaged (incorrect data check)");
  const std::string zstd = Zstd("some text that is long enough to be cut");
  EXPECT_EQ(Text(zstd.substr(0, zstd.size() - 3)), "error: zstd data is cut off");
  EXPECT_TRUE(Text(zstd + "rest").starts_with("error: zstd data is damaged"));
  EXPECT_EQ(Text("\x1F\x8B"), "error: gzip data is cut off");
}

TEST_F(TextFileTest, PackedBombIsRefusedAtTheLimit) {
  const std::string bomb(10 << 20, '\0');
  const TextLimits limits{.floor = 1 << 20, .ratio = 10};
  EXPECT_EQ(Text(Gzip(bomb), limits),
            "error: unpacks to more than 1048576 bytes, which is refused");
  EXPECT_EQ(Text(Zstd(bomb), limits),
            "error: unpacks to more than 1048576 bytes, which is refused");
  EXPECT_EQ(Text(Gzip(bomb), {.floor = 10 << 20, .ratio = 10}).size(), bomb.size());
}

// The text of a stream whose pieces end where lines do.
std::string ReadAll(TextStream& stream, std::size_t& pieces) {
  std::string text;
  bool whole_lines = true;
  for (auto lines = stream.NextLines(); lines && !lines->empty(); lines = stream.NextLines()) {
    EXPECT_TRUE(whole_lines);
    whole_lines = lines->ends_with('\n');
    text += *lines;
    ++pieces;
  }
  return text;
}

TEST_F(TextFileTest, StreamGivesTheSameLinesInPieces) {
  std::string text = "first\n\n";
  for (int i = 0; i < 40'000; ++i) {
    text += std::string(static_cast<std::size_t>(i % 17), 'a') + std::to_string(i) + "\n";
  }
  text += std::string(1'500'000, 'x') + "\nno line break at the end";
  for (const std::string& stored :
       {text, "\xEF\xBB\xBF" + text, Gzip(text), Gzip(text.substr(0, 77)) + Gzip(text.substr(77)),
        Zstd(text), Zstd(text.substr(0, 99)) + Zstd(text.substr(99))}) {
    auto stream = TextStream::Open(Write(stored), {.floor = 1 << 24});
    ASSERT_TRUE(stream);
    std::size_t pieces = 0;
    EXPECT_EQ(ReadAll(*stream, pieces), text);
    EXPECT_GT(pieces, 1U);
  }
}

TEST_F(TextFileTest, StreamReportsDamageAndBombsAsTheFileDoes) {
  const std::string packed = Gzip(std::string(100'000, 'a') + "\n");
  const std::string frames = Zstd("some text\n");
  for (const std::string& stored :
       {packed.substr(0, packed.size() - 9), packed + "xx", frames.substr(0, frames.size() - 3),
        std::string("\x1F\x8B"), packed.substr(0, 5) + "????????????"}) {
    const std::string path = Write(stored);
    const auto whole = TextFile::Read(path);
    ASSERT_FALSE(whole);
    auto stream = TextStream::Open(path);
    ASSERT_TRUE(stream);
    auto lines = stream->NextLines();
    while (lines && !lines->empty()) {
      lines = stream->NextLines();
    }
    ASSERT_FALSE(lines);
    EXPECT_EQ(lines.error().Text(), whole.error().Text());
  }
  auto bomb = TextStream::Open(Write(packed), {.floor = 1000, .ratio = 1});
  ASSERT_TRUE(bomb);
  EXPECT_FALSE(bomb->NextLines());
}

TEST_F(TextFileTest, MissingFileAndDirectoryAreNamed) {
  const auto missing = TextFile::Read((directory_ / "none").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(missing.error().Text(), (directory_ / "none").string() + ": no such file");
  const auto folder = TextFile::Read(directory_.string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "is a directory, a file is needed");
  EXPECT_EQ(TextFile::Read("").error().message, "no such file");
}

TEST_F(TextFileTest, PipeIsReadToItsEnd) {
  const std::string path = (directory_ / "pipe").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string text(200000, 'p');
  const pid_t writer = fork();
  if (writer == 0) {
    std::ofstream(path) << text;
    _exit(0);
  }
  const auto file = TextFile::Read(path);
  waitpid(writer, nullptr, 0);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->Text(), text);
  const auto endless = TextFile::Read("/dev/zero", {.pipe = 1 << 20});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message, "delivers more than 1048576 bytes, which is refused");
}

TEST_F(TextFileTest, TextSurvivesAMove) {
  auto file = TextFile::Read(Write(Gzip("moved")));
  ASSERT_TRUE(file);
  const TextFile second = *std::move(file);
  EXPECT_EQ(second.Text(), "moved");
}

TEST_F(TextFileTest, MappedFileRefusesWhatIsNoRegularFile) {
  EXPECT_EQ(MappedFile::Open("/dev/null").error().message, "is not a regular file");
}

}  // namespace
}  // namespace dynosim
