// SPDX-License-Identifier: Apache-2.0
// TextFile: the whole content of an input file as bytes. Plain files are mapped; gzip (any number
// of members) and zstd (any number of frames) are recognised by their first bytes and unpacked in
// memory, whatever the file is called; pipes are read to their end. A UTF-8 byte-order mark is
// skipped. kPadding zero bytes are readable behind the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"

namespace dynosim {

// How much memory an input may ask for. A packed file may unpack to `ratio` times its size or to
// `floor` bytes, whichever is more; a pipe may deliver `pipe` bytes.
struct TextLimits {
  std::uint64_t floor = std::uint64_t{1} << 30;
  std::uint64_t ratio = 100;
  std::uint64_t pipe = std::uint64_t{8} << 30;
};

class TextFile {
 public:
  static constexpr std::size_t kPadding = MappedFile::kPadding;

  static Result<TextFile> Read(const std::string& path, TextLimits limits = {});

  std::string_view Text() const { return text_; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  using Buffer = std::unique_ptr<char, Free>;
  friend class GrowingBuffer;

  // The bytes as they are.
  static Result<TextFile> ReadPlain(const std::string& path, const TextLimits& limits);

  MappedFile mapped_;
  Buffer buffer_;
  std::string_view text_;  // into one of the two
};

}  // namespace dynosim
