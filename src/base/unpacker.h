// SPDX-License-Identifier: Apache-2.0
// Unpacker: gzip (any number of members) or zstd (any number of frames), piece by piece.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dynosim {

class Unpacker {
 public:
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;

  // Takes bytes from the front of `packed` and fills the front of `room`, both of which shrink by
  // what was used. Stops when either is used up. A piece that is not the last has two bytes or
  // more.
  virtual Result<void> Step(std::string_view& packed, std::span<char>& room) = 0;
  // True when everything that was taken so far is complete: the data may end here.
  virtual bool AtEnd() const = 0;
  // The error of data that ends elsewhere.
  virtual Error CutOff() const = 0;
};

// By the first bytes of a file; null for anything that is not packed. `path` is for messages.
Result<std::unique_ptr<Unpacker>> MakeUnpacker(const std::string& path, std::string_view first);

}  // namespace dynosim
