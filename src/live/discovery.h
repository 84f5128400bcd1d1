// SPDX-License-Identifier: Apache-2.0
// Discovery over a directory that workers and frontends share: one JSON file per worker process,
// whose modification time is its heartbeat. A file that has not been touched for the time to live
// belongs to a process that died.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/http_client.h"
#include "live/worker_link.h"

namespace dynosim::live {

inline constexpr double kHeartbeatEveryMs = 1000.0;
inline constexpr double kEntryLivesMs = 5000.0;

struct DirectoryEntry {
  std::string id;  // of the process; a file name
  std::string model;
  HttpAddress address;
  std::vector<WorkerCard> cards;  // worker by worker
};

// The JSON text of an entry, and back. `where` is for errors.
std::string EntryText(const DirectoryEntry& entry);
Result<DirectoryEntry> ParseEntry(std::string_view text, const std::string& where);

// What a worker process tells about itself; withdrawn at the end.
class Registration {
 public:
  static Result<Registration> Make(const std::string& folder, const DirectoryEntry& entry);
  Registration() = default;

  // Renews the heartbeat, and the entry when somebody removed it.
  void Renew() const;
  void Withdraw();

 private:
  std::string path_;
  std::string content_;
};

// Entries that are alive, in order of their ids. Files that cannot be read are left out.
std::vector<DirectoryEntry> ListDirectory(const std::string& folder);

}  // namespace dynosim::live
