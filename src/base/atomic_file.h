// SPDX-License-Identifier: Apache-2.0
// AtomicFile: writes a file whole or not at all. Bytes go to a temporary file in the target's
// directory, which replaces the target in one step at Commit(); until then, and after any failure
// (a full disk too), the old file stays as it was and no temporary file is left behind.
// Missing parent directories are created. Devices and pipes are written directly.
#pragma once

#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace dynosim {

class AtomicFile {
 public:
  // Fails early when the target cannot be written at all (a directory, a read-only file, ...).
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  // Without a Commit() everything written is thrown away.
  ~AtomicFile();

  // Buffered. A failure is remembered and returned by Commit().
  void Append(std::string_view bytes);

  // Replaces the target; an old one only when the new content is on the disk. Call at most once.
  Result<void> Commit();
  // The same, but a file that is there stays, even one that another process has just written: then
  // the name gets a number, as in report_2.json. Returns the path of the new file.
  Result<std::string> CommitBeside();

 private:
  AtomicFile() = default;
  void Flush();
  void FlushAndClose();

  std::string path_;       // as the user named it, for messages
  std::string target_;     // with symbolic links resolved
  std::string temporary_;  // empty when the target is written directly or is committed
  FileDescriptor file_;
  bool replaces_ = false;  // there is an old file
  std::string buffer_;
  int error_ = 0;  // errno of the first failure
};

// Create, Append, Commit.
Result<void> WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace dynosim
