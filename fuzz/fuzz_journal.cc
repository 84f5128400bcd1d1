// SPDX-License-Identifier: Apache-2.0
// Any bytes as the journal of an interrupted search: resumed or refused in one line, never a crash.
// What is resumed reads the same again, and a refused file keeps its bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/result.h"
#include "search/candidate.h"
#include "search/journal.h"

namespace {

using dynosim::Json;
using dynosim::search::CandidateResult;
using dynosim::search::Journal;

constexpr std::string_view kFirstLine = "{\"search\":{\"document\":1}}\n";

// One file in memory for all inputs.
const std::string& Path() {
  static const std::string path = "/dev/shm/fuzz_journal_" + std::to_string(getpid());
  return path;
}

void Remove() { static_cast<void>(unlink(Path().c_str())); }

void Write(std::string_view head, std::string_view rest) {
  std::ofstream file(Path(), std::ios::binary | std::ios::trunc);
  file.write(head.data(), static_cast<std::streamsize>(head.size()));
  file.write(rest.data(), static_cast<std::streamsize>(rest.size()));
}

std::string Content() {
  std::ifstream file(Path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json Subject() {
  Json document;
  document.Add("document", 1);
  return document;
}

std::string Text(const std::map<std::size_t, CandidateResult>& finished) {
  std::string text;
  for (const auto& [trial, result] : finished) {
    text += std::to_string(trial) + DumpJson(result.ToJson()) + "\n";
  }
  return text;
}

// What is there is read once and, when it can be, again.
void Check(std::string_view head, std::string_view rest) {
  Write(head, rest);
  std::string first;
  {
    auto journal = Journal::Resume(Path(), Subject());
    if (!journal) {
      DYNO_CHECK(!journal.error().message.empty());
      DYNO_CHECK(Content() == std::string(head) + std::string(rest));
      return;
    }
    first = Text(journal->finished());
    for (const auto& [trial, result] : journal->finished()) {
      DYNO_CHECK(journal->Append(trial, result).has_value());
    }
  }
  auto again = Journal::Resume(Path(), Subject());
  DYNO_CHECK(again.has_value());
  DYNO_CHECK(Text(again->finished()) == first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int at_exit = std::atexit(Remove);
  DYNO_CHECK(at_exit == 0);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check("", text);
  Check(kFirstLine, text);
  return 0;
}
