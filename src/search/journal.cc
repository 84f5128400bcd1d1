// SPDX-License-Identifier: Apache-2.0
#include "search/journal.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "search/candidate.h"

namespace dynosim::search {
namespace {

constexpr std::string_view kSubject = "search";
constexpr double kMaxTrial = 1e9;

std::unexpected<Error> SystemError(const std::string& path, std::string_view what) {
  return FailedError(path, std::string(what) + ": " + SystemErrorText(errno));
}

// A line that is no finished candidate.
std::unexpected<Error> Spoilt(const std::string& where, const std::string& why) {
  return UsageError("--resume", where + ": " + why + "; --overwrite starts again");
}

}  // namespace

Journal::Journal(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<void> Journal::Lock() const {
  if (flock(file_.value(), LOCK_EX | LOCK_NB) != 0) {
    return UsageError(path_, "is in use by another run");
  }
  return {};
}

Result<Journal> Journal::Create(const std::string& path, const Json& subject) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (file.value() < 0) {
    return SystemError(path, "cannot be made");
  }
  Journal journal(path, std::move(file));
  DYNO_TRY_VOID(journal.Lock());
  Json line;
  line.Add(std::string(kSubject), subject);
  DYNO_TRY_VOID(journal.WriteLine(line));
  return journal;
}

Result<Journal> Journal::Resume(const std::string& path, const Json& subject) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (file.value() < 0) {
    return errno == ENOENT ? UsageError("--resume", "there is no unfinished search: no " + path)
                           : SystemError(path, "cannot be read");
  }
  Journal journal(path, std::move(file));
  DYNO_TRY_VOID(journal.Lock());
  std::size_t whole = 0;
  {
    DYNO_TRY(const TextFile text, TextFile::Read(path));
    DYNO_TRY(whole, journal.ReadLines(text.Text(), subject));
  }
  if (ftruncate(journal.file_.value(), static_cast<off_t>(whole)) != 0) {
    return SystemError(path, "cannot be written");
  }
  if (whole == 0) {  // cut off in its first line
    Json line;
    line.Add(std::string(kSubject), subject);
    DYNO_TRY_VOID(journal.WriteLine(line));
  }
  return journal;
}

// Returns the bytes of the whole lines.
Result<std::size_t> Journal::ReadLines(std::string_view text, const Json& subject) {
  std::size_t at = 0;
  for (std::uint64_t number = 1;; ++number) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) {
      return at;
    }
    const std::string where = path_ + ":" + std::to_string(number);
    const auto line = ParseJson(text.substr(at, end - at), where);
    at = end + 1;
    if (number == 1) {
      const Json* found = line && line->is_object() ? line->Find(kSubject) : nullptr;
      if (found == nullptr || DumpJson(*found) != DumpJson(subject)) {
        return UsageError("--resume", path_ +
                                          " belongs to another document or other inputs; "
                                          "--overwrite starts again");
      }
      continue;
    }
    if (!line) {
      return Spoilt(where, "is no JSON");
    }
    const Json* trial = line->is_object() ? line->Find("trial") : nullptr;
    const Json* result = line->is_object() ? line->Find("result") : nullptr;
    if (trial == nullptr || !trial->is_integer() || trial->number() < 0.0 ||
        trial->number() > kMaxTrial || result == nullptr) {
      return Spoilt(where, "is no finished candidate");
    }
    auto candidate = CandidateResult::FromJson(*result, "its result");
    if (!candidate) {
      return Spoilt(where, candidate.error().Text());
    }
    finished_.insert_or_assign(static_cast<std::size_t>(trial->number()), *std::move(candidate));
  }
}

Result<void> Journal::WriteLine(const Json& line) {
  const std::string text = DumpJson(line) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(file_.value(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      return SystemError(path_, "cannot be written");
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> Journal::Append(std::size_t trial, const CandidateResult& result) {
  Json line;
  line.Add("trial", trial);
  line.Add("result", result.ToJson());
  return WriteLine(line);
}

void Journal::Remove() { unlink(path_.c_str()); }

}  // namespace dynosim::search
