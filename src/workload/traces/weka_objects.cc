// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/weka_objects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/blake3.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/blank.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"
#include "workload/traces/weka_files.h"

namespace dynosim::workload {
namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxLength = 10'000'000;

using Text = std::optional<std::string>;

bool Require(JsonRows& rows, bool given, std::string_view member) {
  return given || rows.FailMember(fmt::format("has no {}", member));
}

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0.0; }

enum class Field : std::uint8_t {
  kType,
  kTime,
  kModel,
  kInput,
  kOutput,
  kHashes,
  kApiTime,
  kAgentId,
  kStatus,
  kDuration,
  kRequests,
  kOther,
};
constexpr std::array kFields = {
    MemberName<Field>{"type", Field::kType},
    MemberName<Field>{"t", Field::kTime},
    MemberName<Field>{"model", Field::kModel},
    MemberName<Field>{"in", Field::kInput},
    MemberName<Field>{"out", Field::kOutput},
    MemberName<Field>{"hash_ids", Field::kHashes},
    MemberName<Field>{"api_time", Field::kApiTime},
    MemberName<Field>{"agent_id", Field::kAgentId},
    MemberName<Field>{"status", Field::kStatus},
    MemberName<Field>{"duration_ms", Field::kDuration},
    MemberName<Field>{"requests", Field::kRequests},
};

// One entry as written.
struct RawEntry {
  Text type, model, agent_id, status;
  std::optional<double> t, api_time, duration_ms;
  std::optional<std::uint64_t> input, output;
  std::uint64_t hashes_begin = 0;
  bool has_requests = false;
  std::vector<WekaRequest> requests;
};

// Reads one object of a file.
class ObjectReader {
 public:
  ObjectReader(JsonRows& rows, WekaObject& object) : rows_(rows), object_(object) {}

  bool Read();

 private:
  bool ReadModels();
  bool ReadEntries();
  bool ReadEntry(bool nested, RawEntry& raw);
  bool ReadMember(Field field, bool nested, RawEntry& raw);
  bool ReadNested(RawEntry& raw);
  bool ToRequest(const RawEntry& raw, WekaRequest& out);
  bool ToSubagent(RawEntry raw, WekaSubagent& out);
  std::uint32_t Model(const std::string& name);
  bool CheckObject();

  JsonRows& rows_;
  WekaObject& object_;
  UnsignedList list_;
  Text id_, scope_;
  std::optional<std::uint64_t> block_size_;
  std::vector<std::string> declared_;
  bool has_requests_ = false;
};

bool ObjectReader::ReadModels() {
  bool is_list = false;
  if (!rows_.EnterList(is_list) || !is_list) {
    return !rows_.Failed();
  }
  while (rows_.NextElement()) {
    Text model;
    if (!rows_.ReadString(model) || !model) {
      return rows_.FailMember("must be a string");
    }
    declared_.push_back(std::move(*model));
  }
  return !rows_.Failed();
}

bool ObjectReader::ReadMember(Field field, bool nested, RawEntry& raw) {
  switch (field) {
    case Field::kType:
      return rows_.ReadString(raw.type);
    case Field::kTime:
      return rows_.ReadDecimal(raw.t);
    case Field::kModel:
      return rows_.ReadString(raw.model);
    case Field::kInput:
      return rows_.ReadUnsigned(kMaxU64, raw.input);
    case Field::kOutput:
      return rows_.ReadUnsigned(kMaxU64, raw.output);
    case Field::kHashes:
      if (!rows_.ReadUnsignedList(kMaxU64, list_)) {
        return false;
      }
      object_.hashes.insert(object_.hashes.end(), list_.Values().begin(), list_.Values().end());
      return true;
    case Field::kApiTime:
      return rows_.ReadDecimal(raw.api_time);
    case Field::kAgentId:
      return rows_.ReadString(raw.agent_id);
    case Field::kStatus:
      return rows_.ReadString(raw.status);
    case Field::kDuration:
      return rows_.ReadDecimal(raw.duration_ms);
    case Field::kRequests:
      return nested ? rows_.Skip() : ReadNested(raw);
    case Field::kOther:
      return rows_.Skip();
  }
  return false;
}

bool ObjectReader::ReadEntry(bool nested, RawEntry& raw) {
  bool is_object = false;
  if (!rows_.EnterObject(is_object) || !is_object) {
    return rows_.FailMember("must be an object");
  }
  raw.hashes_begin = object_.hashes.size();
  MemberReader<Field> members(kFields);
  while (members.Next(rows_)) {
    if (!ReadMember(members.field(), nested, raw)) {
      return false;
    }
  }
  return !rows_.Failed();
}

bool ObjectReader::ReadNested(RawEntry& raw) {
  if (!rows_.EnterList(raw.has_requests) || !raw.has_requests) {
    return !rows_.Failed();
  }
  while (rows_.NextElement()) {
    RawEntry inner;
    if (!ReadEntry(true, inner) || !ToRequest(inner, raw.requests.emplace_back())) {
      return false;
    }
  }
  return !rows_.Failed();
}

std::uint32_t ObjectReader::Model(const std::string& name) {
  const auto at = std::find(object_.models.begin(), object_.models.end(), name);
  const auto index = static_cast<std::uint32_t>(at - object_.models.begin());
  if (at == object_.models.end()) {
    object_.models.push_back(name);
  }
  return index;
}

bool ObjectReader::ToRequest(const RawEntry& raw, WekaRequest& out) {
  if (!Require(rows_, raw.type.has_value(), "type") || !Require(rows_, raw.t.has_value(), "t")) {
    return false;
  }
  if (*raw.type != "n" && *raw.type != "s") {
    return rows_.FailMember(fmt::format(
        "must have the type n or s (or subagent, in the outer list), got \"{}\"", *raw.type));
  }
  if (!Require(rows_, raw.model.has_value(), "model") ||
      !Require(rows_, raw.input.has_value(), "in") ||
      !Require(rows_, raw.output.has_value(), "out")) {
    return false;
  }
  if (!IsTime(*raw.t) || (raw.api_time && !IsTime(*raw.api_time))) {
    return rows_.FailMember("must have t and api_time of at least 0 seconds");
  }
  if (*raw.input < 1 || *raw.input > kMaxLength || *raw.output > kMaxLength) {
    return rows_.FailMember(
        fmt::format("must have in from 1 to {} and out from 0 to {}, got {} "
                    "and {}",
                    kMaxLength, kMaxLength, *raw.input, *raw.output));
  }
  out = {.t = *raw.t,
         .api_time = raw.api_time,
         .model = Model(*raw.model),
         .input_tokens = *raw.input,
         .output_tokens = *raw.output,
         .has_hashes = object_.hashes.size() > raw.hashes_begin,
         .hashes_begin = raw.hashes_begin,
         .hashes_size = object_.hashes.size() - raw.hashes_begin};
  return true;
}

bool ObjectReader::ToSubagent(RawEntry raw, WekaSubagent& out) {
  if (!Require(rows_, raw.t.has_value(), "t") ||
      !Require(rows_, raw.agent_id.has_value(), "agent_id") ||
      !Require(rows_, raw.status.has_value(), "status") ||
      !Require(rows_, raw.has_requests, "requests")) {
    return false;
  }
  if (!IsTime(*raw.t)) {
    return rows_.FailMember("must have a t of at least 0 seconds");
  }
  if (raw.duration_ms &&
      (!IsTime(*raw.duration_ms) || std::floor(*raw.duration_ms) != *raw.duration_ms)) {
    return rows_.FailMember("must have a duration_ms that is a whole number of at least 0");
  }
  if (*raw.status != "completed" && *raw.status != "async_launched") {
    return rows_.FailMember(
        fmt::format("of the subagent {} has the status \"{}\"; it must be "
                    "completed or async_launched",
                    *raw.agent_id, *raw.status));
  }
  out.agent_id = std::move(*raw.agent_id);
  out.blocking = *raw.status == "completed";
  out.t = *raw.t;
  out.duration_ms = raw.duration_ms;
  out.requests = std::move(raw.requests);
  if (out.blocking && out.requests.empty()) {
    return rows_.FailMember(
        fmt::format("of the subagent {} has no requests, but it is completed", out.agent_id));
  }
  return true;
}

bool ObjectReader::ReadEntries() {
  if (!rows_.EnterList(has_requests_) || !has_requests_) {
    return !rows_.Failed();
  }
  while (rows_.NextElement()) {
    RawEntry raw;
    if (!ReadEntry(false, raw)) {
      return false;
    }
    WekaEntry& entry = object_.entries.emplace_back();
    if (raw.type == "subagent") {
      if (!ToSubagent(std::move(raw), entry.subagent.emplace())) {
        return false;
      }
    } else if (!ToRequest(raw, entry.request)) {
      return false;
    }
  }
  return !rows_.Failed();
}

bool ObjectReader::CheckObject() {
  const bool given[] = {id_.has_value(), block_size_.has_value(), scope_.has_value(),
                        has_requests_};
  constexpr const char* kNames[] = {"id", "block_size", "hash_id_scope", "requests"};
  for (std::size_t i = 0; i < std::size(given); ++i) {
    if (!given[i]) {
      return rows_.Fail(fmt::format("{}: {} is missing", object_.name, kNames[i]));
    }
  }
  if (*scope_ != "local") {
    return rows_.Fail(
        fmt::format("{}: hash_id_scope must be \"local\", got \"{}\"", object_.name, *scope_));
  }
  if (IsBlank(*id_)) {
    return rows_.Fail(fmt::format("{}: id is empty", object_.name));
  }
  if (*block_size_ == 0) {
    return rows_.Fail(fmt::format("{}: block_size must be greater than 0", object_.name));
  }
  for (const std::string& model : object_.models) {
    if (!declared_.empty() &&
        std::find(declared_.begin(), declared_.end(), model) == declared_.end()) {
      return rows_.Fail(fmt::format("{}: a request has the model \"{}\", which is not in models",
                                    object_.name, model));
    }
  }
  object_.id = std::move(*id_);
  object_.block_size = *block_size_;
  return true;
}

bool ObjectReader::Read() {
  while (rows_.NextMember()) {
    if (rows_.Key() == "id") {
      rows_.ReadString(id_);
    } else if (rows_.Key() == "models") {
      ReadModels();
    } else if (rows_.Key() == "block_size") {
      rows_.ReadUnsigned(kMaxU64, block_size_);
    } else if (rows_.Key() == "hash_id_scope") {
      rows_.ReadString(scope_);
    } else if (rows_.Key() == "requests") {
      ReadEntries();
    } else {
      rows_.Skip();
    }
  }
  return !rows_.Failed() && CheckObject();
}

Result<void> ReadFile(const WekaFile& file, std::vector<WekaObject>& objects) {
  DYNO_TRY(const TextFile text, TextFile::Read(file.path));
  JsonRows rows(file.path, text.Text(), JsonRows::Framing::kObjects);
  for (std::size_t i = 0; rows.NextRow(); ++i) {
    if (!file.many_objects && i > 0) {
      rows.Fail("a .json file holds one object; files of several objects end in .jsonl");
      break;
    }
    WekaObject& object = objects.emplace_back();
    object.where = fmt::format("{}:{}", file.path, rows.Line());
    object.name = file.many_objects ? fmt::format("{}#{:06}", file.name, i) : file.name;
    if (object.name.size() > kBlake3MaxInput) {
      rows.Fail(fmt::format("the file name is longer than {} bytes", kBlake3MaxInput));
      break;
    }
    if (!ObjectReader(rows, object).Read()) {
      break;
    }
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return {};
}

}  // namespace

Result<std::vector<WekaObject>> ReadWekaObjects(const std::string& path) {
  DYNO_TRY(const std::vector<WekaFile> files, FindWekaFiles(path));
  std::vector<WekaObject> objects;
  for (const WekaFile& file : files) {
    DYNO_TRY_VOID(ReadFile(file, objects));
  }
  if (objects.empty()) {
    return FailedError(path, "the corpus contains no objects");
  }
  return objects;
}

}  // namespace dynosim::workload
