// SPDX-License-Identifier: Apache-2.0
// A file in memory for tests that load thousands of small traces. Not part of the program.
#pragma once

#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace dynosim::workload {

class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("trace", 0)) {}
  std::string Path() const { return fmt::format("/proc/self/fd/{}", file_.value()); }
  void Write(std::string_view text) {
    ASSERT_EQ(ftruncate(file_.value(), 0), 0);
    ASSERT_EQ(pwrite(file_.value(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }

 private:
  FileDescriptor file_;
};

}  // namespace dynosim::workload
