// SPDX-License-Identifier: Apache-2.0
#include "base/text_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "base/unpacker.h"

namespace dynosim {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kPackedPiece = std::size_t{1} << 18;

}  // namespace

Result<TextStream> TextStream::Open(const std::string& path, TextLimits limits) {
  TextStream stream;
  stream.path_ = path;
  stream.limits_ = limits;
  DYNO_TRY(stream.file_, FileDescriptor::OpenForReading(path));
  stream.piece_.resize(kPiece + TextFile::kPadding);
  return stream;
}

Result<bool> TextStream::ReadInto(char* out, std::size_t room, std::size_t& got) {
  got = 0;
  while (got < room) {
    const ssize_t bytes = read(file_.value(), out + got, room - got);
    if (bytes == 0) {
      break;
    }
    if (bytes < 0 && errno != EINTR) {
      return FailedError(path_, "cannot be read: " + SystemErrorText(errno));
    }
    got += bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
  }
  read_ += got;
  return got > 0;
}

// Keeps what the unpacker has not taken, and reads more behind it.
Result<bool> TextStream::ReadPacked() {
  const std::size_t kept = packed_end_ - packed_at_;
  std::memmove(packed_.data(), packed_.data() + packed_at_, kept);
  packed_at_ = 0;
  std::size_t got = 0;
  DYNO_TRY_VOID(ReadInto(packed_.data() + kept, packed_.size() - kept, got));
  packed_end_ = kept + got;
  return got > 0;
}

Result<bool> TextStream::Fill() {
  std::span<char> room(piece_.data() + used_, piece_.size() - TextFile::kPadding - used_);
  if (unpacker_ == nullptr) {
    std::size_t got = 0;
    DYNO_TRY(const bool more, ReadInto(room.data(), room.size(), got));
    used_ += got;
    return more;
  }
  const std::size_t before = room.size();
  while (!room.empty()) {
    if (packed_end_ - packed_at_ < 2) {
      DYNO_TRY_VOID(ReadPacked());
    }
    std::string_view packed(packed_.data() + packed_at_, packed_end_ - packed_at_);
    const bool starved = packed.empty();
    if (starved && unpacker_->AtEnd()) {
      break;
    }
    DYNO_TRY_VOID(unpacker_->Step(packed, room));
    packed_at_ = packed_end_ - packed.size();
    if (starved && !room.empty() && !unpacker_->AtEnd()) {
      return std::unexpected(unpacker_->CutOff());
    }
  }
  const std::size_t got = before - room.size();
  used_ += got;
  unpacked_ += got;
  const std::uint64_t limit = std::max(limits_.floor, SaturatingMultiply(read_, limits_.ratio));
  if (unpacked_ > limit) {
    return FailedError(path_,
                       fmt::format("unpacks to more than {} bytes, which is refused", limit));
  }
  return got > 0;
}

Result<std::string_view> TextStream::NextLines() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (!begun_) {
    begun_ = true;
    packed_.resize(kPackedPiece);
    DYNO_TRY_VOID(ReadPacked());
    DYNO_TRY(unpacker_, MakeUnpacker(path_, {packed_.data(), packed_end_}));
    if (unpacker_ == nullptr) {
      std::memcpy(piece_.data(), packed_.data(), packed_end_);
      used_ = packed_end_;
      packed_ = {};
    }
    DYNO_TRY_VOID(Fill());
    if (std::string_view(piece_.data(), used_).starts_with(kMark)) {
      lines_ = kMark.size();
    }
  }
  std::memmove(piece_.data(), piece_.data() + lines_, used_ - lines_);
  used_ -= lines_;
  lines_ = 0;
  std::size_t searched = 0;
  for (;;) {
    bool more = true;
    if (used_ < piece_.size() - TextFile::kPadding) {
      DYNO_TRY(more, Fill());
    }
    const std::string_view fresh(piece_.data() + searched, used_ - searched);
    if (const std::size_t end = fresh.rfind('\n'); end != fresh.npos) {
      lines_ = searched + end + 1;
      break;
    }
    searched = used_;
    if (!more) {
      lines_ = used_;
      std::memset(piece_.data() + used_, 0, TextFile::kPadding);
      break;
    }
    if (used_ == piece_.size() - TextFile::kPadding) {
      piece_.resize(used_ * 2 + TextFile::kPadding);
    }
  }
  return std::string_view(piece_.data(), lines_);
}

}  // namespace dynosim
