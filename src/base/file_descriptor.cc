// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/result.h"

namespace dynosim {

std::string SystemErrorText(int error_number) {
  return std::generic_category().message(error_number);
}

Result<FileDescriptor> FileDescriptor::OpenForReading(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsOpen()) {
    return FailedError(
        path, errno == ENOENT ? "no such file" : "cannot be opened: " + SystemErrorText(errno));
  }
  struct stat status{};
  if (fstat(file.value(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return FailedError(path, "is a directory, a file is needed");
  }
  return file;
}

int FileDescriptor::Close() {
  if (value_ < 0) {
    return 0;
  }
  return close(std::exchange(value_, -1)) == 0 ? 0 : errno;
}

}  // namespace dynosim
