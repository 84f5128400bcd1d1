// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <cerrno>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace dynosim {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  DYNO_TRY(const FileDescriptor file, FileDescriptor::OpenForReading(path));
  struct stat status{};
  if (fstat(file.value(), &status) != 0) {
    return FailedError(path, "cannot be read: " + SystemErrorText(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return FailedError(path, "is not a regular file");
  }
  MappedFile result;
  result.size_ = static_cast<std::size_t>(status.st_size);
  // An anonymous area with room for the padding first, then the file over its front.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t wanted = (result.size_ + kPadding + page - 1) / page * page;
  void* const area = mmap(nullptr, wanted, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) {
    return FailedError(path, "cannot be mapped: " + SystemErrorText(errno));
  }
  result.base_ = area;
  result.mapped_ = wanted;
  // Small files are mapped with all their pages at once, which costs less than a fault per page.
  constexpr std::size_t kSmall = std::size_t{64} << 20;
  const int flags = MAP_PRIVATE | MAP_FIXED | (result.size_ <= kSmall ? MAP_POPULATE : 0);
  if (result.size_ > 0 &&
      mmap(area, result.size_, PROT_READ, flags, file.value(), 0) == MAP_FAILED) {
    return FailedError(path, "cannot be mapped: " + SystemErrorText(errno));
  }
  return result;
}

MappedFile::~MappedFile() {
  if (base_ != nullptr) {
    munmap(base_, mapped_);
  }
}

}  // namespace dynosim
