// SPDX-License-Identifier: Apache-2.0
// ScratchFile: a temporary file without a name for values that a long run should not keep in
// memory. It lies in the folder that TMPDIR names (else /tmp), is made when the first bytes come,
// and is gone with its owner, however that ends. The first failure is remembered: from then on
// bytes are thrown away and reads give zeros, so that writers need not look at every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace dynosim {

class ScratchFile {
 public:
  // Returns where the bytes are for Read().
  std::uint64_t Append(std::span<const std::byte> bytes);
  // Reads bytes that one Append() wrote.
  void Read(std::uint64_t at, std::span<std::byte> out);

  // The first failure, else null.
  const Error* problem() const { return problem_ ? &*problem_ : nullptr; }

 private:
  void Open();
  void Fail(const char* verb, int error_number);

  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::optional<Error> problem_;
};

}  // namespace dynosim
