// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/unsigned_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dynosim::workload {

const char* ReadUnsignedList(const char* at, std::uint64_t max, UnsignedList& out) {
  constexpr std::size_t kFirstRoom = 256;
  out.Clear();
  if (*at != '[') {
    return nullptr;
  }
  at = SkipBlanks(at + 1);
  std::size_t size = 0;
  std::size_t room = out.memory.size();
  std::uint64_t* numbers = out.memory.data();
  while (*at != ']' || size != 0) {
    if (size == room) {
      out.memory.resize(std::max(kFirstRoom, room * 2));
      room = out.memory.size();
      numbers = out.memory.data();
    }
    at = ReadDigits(at, numbers[size]);
    if (at == nullptr || numbers[size] > max) {
      return nullptr;
    }
    ++size;
    if (at[0] == ',' && at[1] == ' ' && IsDigit(at[2])) {  // how most traces are written
      at += 2;
      continue;
    }
    at = SkipBlanks(at);
    if (*at == ']') {
      break;
    }
    if (*at != ',') {
      return nullptr;
    }
    at = SkipBlanks(at + 1);
  }
  out.present = true;
  out.size = size;
  return at + 1;
}

}  // namespace dynosim::workload
