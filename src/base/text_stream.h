// SPDX-License-Identifier: Apache-2.0
// TextStream: the lines of a regular file from first to last in pieces of about a megabyte, so that
// a file of any size costs the memory of one piece. Packed files are unpacked on the way and a
// UTF-8 byte-order mark is skipped, as TextFile does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/text_file.h"
#include "base/unpacker.h"

namespace dynosim {

class TextStream {
 public:
  static Result<TextStream> Open(const std::string& path, TextLimits limits = {});

  // The next whole lines, at least one of any length, or nothing at the end. Valid until the next
  // call; TextFile::kPadding bytes behind it are readable.
  Result<std::string_view> NextLines();

 private:
  // Appends bytes of the text to the piece; false at the end of the file.
  Result<bool> Fill();
  Result<bool> ReadPacked();
  Result<bool> ReadInto(char* out, std::size_t room, std::size_t& got);

  std::string path_;
  TextLimits limits_;
  FileDescriptor file_;
  std::unique_ptr<Unpacker> unpacker_;  // null for a plain file
  std::vector<char> packed_;            // bytes of a packed file
  std::size_t packed_at_ = 0, packed_end_ = 0;
  std::uint64_t read_ = 0;      // bytes of the file
  std::uint64_t unpacked_ = 0;  // bytes of the text
  std::vector<char> piece_;
  std::size_t used_ = 0;   // bytes in the piece
  std::size_t lines_ = 0;  // of these, handed out
  bool begun_ = false;
};

}  // namespace dynosim
