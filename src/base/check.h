// SPDX-License-Identifier: Apache-2.0
// Programmer errors: DYNO_CHECK stays on in release builds and aborts with file, line and
// condition; DYNO_DCHECK is for costly conditions and exists in debug and sanitizer builds only.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace dynosim {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dynosim

#define DYNO_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::dynosim::CheckFailed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define DYNO_DCHECK(condition) static_cast<void>(0)
#else
#define DYNO_DCHECK(condition) DYNO_CHECK(condition)
#endif
