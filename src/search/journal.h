// SPDX-License-Identifier: Apache-2.0
// Journal: the finished candidates of a search on disk, a line each, so that a search which ends
// early goes on where it was. A line is written whole; a torn last one is cut off when the file is
// opened again. One process at a time has a journal open.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/result.h"
#include "search/candidate.h"

namespace dynosim::search {

class Journal {
 public:
  // A new file, which must not exist. `subject` says which search it belongs to.
  static Result<Journal> Create(const std::string& path, const Json& subject);
  // An existing one; an error when its search is another one.
  static Result<Journal> Resume(const std::string& path, const Json& subject);

  // What the file held when it was opened, by trial.
  std::map<std::size_t, CandidateResult>& finished() { return finished_; }

  // Errors: the line could not be written.
  Result<void> Append(std::size_t trial, const CandidateResult& result);
  // Takes the file away; the result is written elsewhere by now.
  void Remove();

 private:
  Journal(std::string path, FileDescriptor file);
  Result<void> Lock() const;
  Result<void> WriteLine(const Json& line);
  Result<std::size_t> ReadLines(std::string_view text, const Json& subject);

  std::string path_;
  FileDescriptor file_;
  std::map<std::size_t, CandidateResult> finished_;
};

}  // namespace dynosim::search
