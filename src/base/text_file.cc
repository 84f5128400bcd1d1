// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/mapped_file.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/unpacker.h"

namespace dynosim {

// Memory that grows by doubling as bytes really arrive, up to a limit. Sizes that a packed file
// declares are never trusted.
class GrowingBuffer {
 public:
  explicit GrowingBuffer(std::uint64_t limit) : limit_(limit) {}

  char* Tail() { return buffer_.get() + size_; }
  std::size_t Room() const { return capacity_ - size_; }
  void Added(std::size_t bytes) { size_ += bytes; }

  // Makes room for at least one byte; false when the limit is reached or memory is exhausted.
  bool Grow() {
    constexpr std::size_t kFirst = 1 << 16;
    const std::uint64_t next = std::min<std::uint64_t>(
        limit_, std::max<std::uint64_t>(kFirst, std::uint64_t{capacity_} * 2));
    return next > size_ && Resize(static_cast<std::size_t>(next));
  }

  // Gives back what was not used and hands over the text with its padding.
  bool Finish(TextFile& file) {
    if (!Resize(size_)) {
      return false;
    }
    std::memset(buffer_.get() + size_, 0, TextFile::kPadding);
    file.text_ = {buffer_.get(), size_};
    file.buffer_ = std::move(buffer_);
    return true;
  }

 private:
  bool Resize(std::size_t capacity) {
    char* const before = buffer_.release();
    void* const after = std::realloc(before, capacity + TextFile::kPadding);
    buffer_.reset(after == nullptr ? before : static_cast<char*>(after));
    capacity_ = after == nullptr ? capacity_ : capacity;
    return after != nullptr;
  }

  std::uint64_t limit_;
  TextFile::Buffer buffer_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::unexpected<Error> TooLarge(const std::string& path, std::uint64_t limit) {
  return FailedError(path, fmt::format("unpacks to more than {} bytes, which is refused", limit));
}

Result<void> Unpack(const std::string& path, Unpacker& unpacker, std::string_view packed,
                    std::uint64_t limit, GrowingBuffer& out) {
  for (;;) {
    if (out.Room() == 0 && !out.Grow()) {
      return TooLarge(path, limit);
    }
    std::span<char> room(out.Tail(), out.Room());
    DYNO_TRY_VOID(unpacker.Step(packed, room));
    out.Added(out.Room() - room.size());
    if (packed.empty() && unpacker.AtEnd()) {
      return {};
    }
    if (packed.empty() && !room.empty()) {
      return std::unexpected(unpacker.CutOff());
    }
  }
}

Result<void> ReadPipe(const std::string& path, const FileDescriptor& file, std::uint64_t limit,
                      GrowingBuffer& out) {
  for (;;) {
    if (out.Room() == 0 && !out.Grow()) {
      return FailedError(path, fmt::format("delivers more than {} bytes, which is refused", limit));
    }
    const ssize_t got = read(file.value(), out.Tail(), out.Room());
    if (got == 0) {
      return {};
    }
    if (got < 0 && errno != EINTR) {
      return FailedError(path, "cannot be read: " + SystemErrorText(errno));
    }
    out.Added(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
}

bool IsRegular(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

Result<TextFile> TextFile::ReadPlain(const std::string& path, const TextLimits& limits) {
  TextFile file;
  if (IsRegular(path)) {
    DYNO_TRY(file.mapped_, MappedFile::Open(path));
    file.text_ = file.mapped_.Text();
    return file;
  }
  DYNO_TRY(const FileDescriptor pipe, FileDescriptor::OpenForReading(path));
  GrowingBuffer buffer(limits.pipe);
  DYNO_TRY_VOID(ReadPipe(path, pipe, limits.pipe, buffer));
  if (!buffer.Finish(file)) {
    return FailedError(path, "cannot be read: out of memory");
  }
  return file;
}

Result<TextFile> TextFile::Read(const std::string& path, TextLimits limits) {
  DYNO_TRY(TextFile file, ReadPlain(path, limits));
  DYNO_TRY(const std::unique_ptr<Unpacker> unpacker, MakeUnpacker(path, file.text_));
  if (unpacker != nullptr) {
    const std::uint64_t limit =
        std::max(limits.floor, SaturatingMultiply(file.text_.size(), limits.ratio));
    GrowingBuffer buffer(limit);
    DYNO_TRY_VOID(Unpack(path, *unpacker, file.text_, limit, buffer));
    TextFile unpacked;
    if (!buffer.Finish(unpacked)) {
      return FailedError(path, "cannot be unpacked: out of memory");
    }
    file = std::move(unpacked);
  }
  if (file.text_.starts_with(kByteOrderMark)) {
    file.text_.remove_prefix(kByteOrderMark.size());
  }
  return file;
}

}  // namespace dynosim
