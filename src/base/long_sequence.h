// SPDX-License-Identifier: Apache-2.0
// LongSequence<T>: values that are appended one by one and read front to back. With a scratch file
// only the last values are in memory and the others lie there in whole pieces; without one it is a
// vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/scratch_file.h"

namespace dynosim {

template <class T>
class LongSequence {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Values of a piece.
  static constexpr std::size_t kPiece = 8192;

  // `scratch`, which may be shared, outlives the sequence.
  explicit LongSequence(ScratchFile* scratch = nullptr) : scratch_(scratch) {}

  void Append(const T& value) {
    if (scratch_ != nullptr && tail_.size() == kPiece) {
      pieces_.push_back(scratch_->Append(std::as_bytes(std::span<const T>(tail_))));
      tail_.clear();
    }
    tail_.push_back(value);
  }
  // The last value, which may still be changed; null if there is none.
  T* Last() { return tail_.empty() ? nullptr : &tail_.back(); }

  std::uint64_t size() const { return pieces_.size() * kPiece + tail_.size(); }
  bool InMemory() const { return pieces_.empty(); }
  // All values, when they are in memory.
  const std::vector<T>& values() const { return tail_; }

  // Calls visit(span of values) for all values in order.
  template <class Visit>
  void ForEachPiece(const Visit& visit) const {
    std::vector<T> piece(pieces_.empty() ? 0 : kPiece);
    for (const std::uint64_t at : pieces_) {
      scratch_->Read(at, std::as_writable_bytes(std::span<T>(piece)));
      visit(std::span<const T>(piece));
    }
    visit(std::span<const T>(tail_));
  }

  void Clear() {
    std::vector<T>().swap(tail_);
    std::vector<std::uint64_t>().swap(pieces_);
  }

 private:
  ScratchFile* scratch_;
  std::vector<T> tail_;
  std::vector<std::uint64_t> pieces_;  // where they are
};

}  // namespace dynosim
