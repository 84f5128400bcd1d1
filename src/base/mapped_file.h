// SPDX-License-Identifier: Apache-2.0
// MappedFile: a regular file mapped read-only into memory for the life of the object. At least
// kPadding zero bytes are readable behind the last byte, so that parsers may read in wide steps.
// The pages belong to the page cache: a mapped file costs no memory of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace dynosim {

class MappedFile {
 public:
  static constexpr std::size_t kPadding = 64;

  // Errors say "no such file", "is a directory", or why the system refuses.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~MappedFile();

  std::string_view Text() const { return {static_cast<const char*>(base_), size_}; }

 private:
  void* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace dynosim
