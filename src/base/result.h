// SPDX-License-Identifier: Apache-2.0
// Expected failures at the borders of the program: configuration, traces, files.
// An Error says what is wrong and where; Result<T> carries either a value or an Error.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace dynosim {

// Which exit code a failure leads to: 2 for usage and configuration, 1 for a failed run or input
// file.
enum class ErrorKind { kUsage, kFailed };

// One line for the user: `where` is a file and line, a flag or a dotted configuration path (may be
// empty), `message` says what is wrong and what is allowed.
struct Error {
  ErrorKind kind = ErrorKind::kUsage;
  std::string where;
  std::string message;

  std::string Text() const { return where.empty() ? message : where + ": " + message; }
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> UsageError(std::string where, std::string message) {
  return std::unexpected(
      Error{.kind = ErrorKind::kUsage, .where = std::move(where), .message = std::move(message)});
}
inline std::unexpected<Error> FailedError(std::string where, std::string message) {
  return std::unexpected(
      Error{.kind = ErrorKind::kFailed, .where = std::move(where), .message = std::move(message)});
}

#define DYNO_CONCAT_INNER(a, b) a##b
#define DYNO_CONCAT(a, b) DYNO_CONCAT_INNER(a, b)
#define DYNO_TRY_IMPL(tmp, lhs, expr)                       \
  auto tmp = (expr);                                        \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  lhs = *std::move(tmp)
// DYNO_TRY(auto x, Load(path)); passes an error on to the caller.
#define DYNO_TRY(lhs, expr) DYNO_TRY_IMPL(DYNO_CONCAT(dyno_try_, __COUNTER__), lhs, expr)
// DYNO_TRY_VOID(Validate(x)); is the same for Result<void>.
#define DYNO_TRY_VOID(expr)                                     \
  do {                                                          \
    if (auto dyno_try_void = (expr); !dyno_try_void) {          \
      return std::unexpected(std::move(dyno_try_void).error()); \
    }                                                           \
  } while (false)

}  // namespace dynosim
