// SPDX-License-Identifier: Apache-2.0
#include "base/scratch_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace dynosim {
namespace {

std::string ScratchFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return error ? std::string("/tmp") : folder.string();
}

}  // namespace

void ScratchFile::Fail(const char* verb, int error_number) {
  problem_ = Error{ErrorKind::kFailed, ScratchFolder(),
                   fmt::format("a temporary file for the samples of a long run cannot be {}: {}; "
                               "TMPDIR can name another folder",
                               verb, SystemErrorText(error_number))};
}

void ScratchFile::Open() {
  std::string name = ScratchFolder() + "/.dynosim-XXXXXX";
  file_ = FileDescriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!file_.IsOpen()) {
    Fail("made", errno);
  } else {
    static_cast<void>(unlink(name.c_str()));
  }
}

std::uint64_t ScratchFile::Append(std::span<const std::byte> bytes) {
  if (!file_.IsOpen() && !problem_) {
    Open();
  }
  const std::uint64_t at = size_;
  while (!bytes.empty() && !problem_) {
    const ssize_t written =
        pwrite(file_.value(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      size_ += static_cast<std::uint64_t>(written);
    } else if (errno != EINTR) {
      Fail("written", errno);
    }
  }
  return at;
}

void ScratchFile::Read(std::uint64_t at, std::span<std::byte> out) {
  while (!out.empty() && !problem_) {
    const ssize_t got = pread(file_.value(), out.data(), out.size(), static_cast<off_t>(at));
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
      at += static_cast<std::uint64_t>(got);
    } else if (got == 0 || errno != EINTR) {
      Fail("read", got == 0 ? EIO : errno);
    }
  }
  std::ranges::fill(out, std::byte{0});
}

}  // namespace dynosim
