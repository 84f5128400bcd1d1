// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace dynosim {
namespace {

constexpr std::size_t kBufferSize = 1 << 18;
constexpr mode_t kNewFileMode = 0666;  // the process's mask applies

std::unexpected<Error> CannotWrite(const std::string& path, int error_number) {
  return FailedError(path, "cannot be written: " + SystemErrorText(error_number));
}

// Writes everything; returns 0 or errno.
int WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// A new file in `directory` that nobody else uses. The name is short, whatever the target's is.
FileDescriptor OpenTemporary(const std::string& directory, std::string& name) {
  for (int attempt = 0;; ++attempt) {
    name = fmt::format("{}/.dynosim-{}-{}.tmp", directory, getpid(), attempt);
    FileDescriptor file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode));
    if (file.IsOpen() || errno != EEXIST) {
      return file;
    }
  }
}

// Makes a rename durable. Some file systems cannot, and the content is safe already.
void SyncDirectory(const std::string& directory) {
  const FileDescriptor folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.IsOpen()) {
    static_cast<void>(fsync(folder.value()));
  }
}

// Returns 0 or errno; EEXIST when the target is there.
int RenameToNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  // The file system cannot do it in one step.
  if (access(to.c_str(), F_OK) == 0) {
    return EEXIST;
  }
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// "folder/report_2.json" of "folder/report.json"; the first has no number.
std::string Numbered(const std::string& path, int number) {
  if (number == 1) {
    return path;
  }
  const std::filesystem::path whole(path);
  const std::string name =
      fmt::format("{}_{}{}", whole.stem().string(), number, whole.extension().string());
  return std::filesystem::path(path).replace_filename(name).string();
}

std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (path.empty()) {
    return FailedError("", "the name of an output file is empty");
  }
  AtomicFile result;
  result.path_ = path;
  result.target_ = path;
  std::error_code error;
  const auto resolved = std::filesystem::weakly_canonical(path, error);
  if (!error) {
    result.target_ = resolved.string();
  }
  struct stat status{};
  const bool exists = stat(result.target_.c_str(), &status) == 0;
  if ((exists && S_ISDIR(status.st_mode)) || path.back() == '/') {
    return FailedError(path, "is a directory, a file is needed");
  }
  if (exists && access(result.target_.c_str(), W_OK) != 0) {
    return CannotWrite(path, errno);
  }
  if (exists && !S_ISREG(status.st_mode)) {
    result.file_ = FileDescriptor(open(result.target_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!result.file_.IsOpen()) {
      return CannotWrite(path, errno);
    }
    return result;
  }
  result.replaces_ = exists;
  const std::string directory = DirectoryOf(result.target_);
  std::filesystem::create_directories(directory, error);
  if (error) {
    return FailedError(path, "its directory cannot be created: " + error.message());
  }
  std::string name;
  result.file_ = OpenTemporary(directory, name);
  if (!result.file_.IsOpen()) {
    return CannotWrite(path, errno);
  }
  result.temporary_ = std::move(name);
  if (exists && fchmod(result.file_.value(), status.st_mode & 07777U) != 0) {
    return CannotWrite(path, errno);
  }
  return result;
}

AtomicFile::~AtomicFile() {
  if (file_.IsOpen() && !temporary_.empty()) {
    static_cast<void>(unlink(temporary_.c_str()));
  }
}

void AtomicFile::Append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferSize) {
    Flush();
  }
  if (bytes.size() > kBufferSize) {
    error_ = error_ != 0 ? error_ : WriteAll(file_.value(), bytes);
    return;
  }
  buffer_.append(bytes);
}

void AtomicFile::Flush() {
  if (error_ == 0) {
    error_ = WriteAll(file_.value(), buffer_);
  }
  buffer_.clear();
}

void AtomicFile::FlushAndClose() {
  Flush();
  // An old file may only go when the new one is on the disk; without an old one nothing is at risk.
  if (error_ == 0 && !temporary_.empty() && replaces_ && fsync(file_.value()) != 0) {
    error_ = errno;
  }
  if (const int closing = file_.Close(); error_ == 0) {
    error_ = closing;
  }
}

Result<void> AtomicFile::Commit() {
  const bool direct = temporary_.empty();
  FlushAndClose();
  if (direct) {
    return error_ == 0 ? Result<void>() : CannotWrite(path_, error_);
  }
  if (error_ == 0 && std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    error_ = errno;
  }
  if (error_ != 0) {
    static_cast<void>(unlink(temporary_.c_str()));
    return CannotWrite(path_, error_);
  }
  if (replaces_) {
    SyncDirectory(DirectoryOf(target_));
  }
  return {};
}

Result<std::string> AtomicFile::CommitBeside() {
  if (temporary_.empty()) {
    DYNO_TRY_VOID(Commit());
    return path_;
  }
  replaces_ = false;
  FlushAndClose();
  int number = 1;
  while (error_ == 0) {
    error_ = RenameToNew(temporary_, Numbered(target_, number));
    if (error_ != EEXIST) {
      break;
    }
    error_ = 0;
    ++number;
  }
  if (error_ != 0) {
    static_cast<void>(unlink(temporary_.c_str()));
    return CannotWrite(path_, error_);
  }
  return Numbered(path_, number);
}

Result<void> WriteFileAtomically(const std::string& path, std::string_view content) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  file.Append(content);
  return file.Commit();
}

}  // namespace dynosim
