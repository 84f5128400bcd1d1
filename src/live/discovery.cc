// SPDX-License-Identifier: Apache-2.0
#include "live/discovery.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "live/http_client.h"
#include "live/worker_link.h"
#include "live/worker_wire.h"

namespace dynosim::live {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".worker.json";

Result<DirectoryEntry> ReadEntry(const std::string& path) {
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  return ParseEntry(file.Text(), path);
}

}  // namespace

std::string EntryText(const DirectoryEntry& entry) {
  Json json;
  json.Add("id", entry.id);
  json.Add("model", entry.model);
  json.Add("url", "http://" + entry.address.host + ":" + std::to_string(entry.address.port));
  Json cards(Json::Array{});
  for (const WorkerCard& card : entry.cards) {
    cards.array().push_back(CardToJson(card));
  }
  json.Add("workers", std::move(cards));
  return DumpJson(json, {.indent = 1}) + "\n";
}

Result<DirectoryEntry> ParseEntry(std::string_view text, const std::string& where) {
  DYNO_TRY(const Json json, ParseJson(text, where));
  const auto member = [&](std::string_view name) {
    return json.is_object() ? json.Find(name) : nullptr;
  };
  const Json* id = member("id");
  const Json* model = member("model");
  const Json* url = member("url");
  const Json* cards = member("workers");
  if (id == nullptr || !id->is_string() || model == nullptr || !model->is_string() ||
      url == nullptr || !url->is_string() || cards == nullptr || !cards->is_array()) {
    return FailedError(where, "is no worker entry");
  }
  DirectoryEntry out = {.id = id->string(), .model = model->string(), .address = {}, .cards = {}};
  DYNO_TRY(out.address, ParseHttpAddress(where, url->string()));
  for (const Json& item : cards->array()) {
    DYNO_TRY(WorkerCard card, CardFromJson(item, where));
    out.cards.push_back(std::move(card));
  }
  return out;
}

Result<Registration> Registration::Make(const std::string& folder, const DirectoryEntry& entry) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return FailedError(folder, "cannot create the discovery directory: " + error.message());
  }
  Registration out;
  out.path_ = (fs::path(folder) / (entry.id + std::string(kSuffix))).string();
  out.content_ = EntryText(entry);
  DYNO_TRY_VOID(WriteFileAtomically(out.path_, out.content_));
  return out;
}

void Registration::Renew() const {
  std::error_code error;
  fs::last_write_time(path_, fs::file_time_type::clock::now(), error);
  if (error) {
    (void)WriteFileAtomically(path_, content_);
  }
}

void Registration::Withdraw() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

std::vector<DirectoryEntry> ListDirectory(const std::string& folder) {
  std::vector<DirectoryEntry> out;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (!path.ends_with(kSuffix)) {
      continue;
    }
    std::error_code gone;
    const auto age = now - fs::last_write_time(it->path(), gone);
    if (gone || age > std::chrono::duration<double, std::milli>(kEntryLivesMs)) {
      continue;
    }
    if (auto entry = ReadEntry(path)) {
      out.push_back(*std::move(entry));
    }
  }
  std::ranges::sort(out, {}, &DirectoryEntry::id);
  return out;
}

}  // namespace dynosim::live
