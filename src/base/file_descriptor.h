// SPDX-License-Identifier: Apache-2.0
// FileDescriptor: owns one open file of the operating system, and the texts of its errors.
// Shared by the files of this module that read and write whole files.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace dynosim {

// Text of an errno value.
std::string SystemErrorText(int error_number);

class FileDescriptor {
 public:
  // Refuses directories. Errors are of kind kFailed and name the path.
  static Result<FileDescriptor> OpenForReading(const std::string& path);

  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int value() const { return value_; }
  bool IsOpen() const { return value_ >= 0; }
  // Returns 0, or the errno of a close that failed.
  int Close();

 private:
  int value_ = -1;
};

}  // namespace dynosim
