// SPDX-License-Identifier: Apache-2.0
// The events of the parser build the value directly: an open container is a frame on a stack, and
// an anchor keeps a copy of its finished value. After the first error all events are ignored.
#include "config/yaml_to_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/json.h"
#include "base/result.h"
#include "config/yaml_scalar.h"

namespace dynosim::config {
namespace {

constexpr std::size_t kMaxDepth = 100;
// Bytes of the expanded document, roughly; far above what a person writes.
constexpr std::size_t kMaxWeight = std::size_t{64} << 20U;
constexpr std::size_t kNodeWeight = 64;
constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::size_t WeightOf(const Json& value) {
  std::size_t weight = kNodeWeight;
  if (value.is_string()) {
    return weight + value.string().size();
  }
  if (value.is_array()) {
    for (const Json& item : value.array()) {
      weight += WeightOf(item);
    }
  }
  if (value.is_object()) {
    for (const Json::Member& member : value.object()) {
      weight += kNodeWeight + member.first.size() + WeightOf(member.second);
    }
  }
  return weight;
}

std::string QuotedStart(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out;
  AppendJsonString(out, text.substr(0, kShown));
  return out;
}

// A container that is still open, or the document itself.
struct Frame {
  bool is_map = false;
  int line = 0;
  YAML::anchor_t anchor = 0;
  Json::Array items;
  Json::Object members;
  std::vector<Json> merged;  // values of << keys, in order
  std::optional<std::string> key;
  bool key_is_merge = false;
};

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& where) : where_(where) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (NeedsKey()) {
      SetKey(mark, "null", false);
    } else {
      Add(mark, anchor, Json());
    }
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, "seq", anchor, false);
  }
  void OnSequenceEnd() override {
    if (!error_) {
      Close(Json(std::move(stack_.back().items)));
    }
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, "map", anchor, true);
  }
  void OnMapEnd() override;

  const std::optional<Error>& error() const { return error_; }
  std::size_t documents() const { return documents_; }
  Json Take() { return std::move(root_); }

 private:
  bool NeedsKey() const {
    return !error_ && !stack_.empty() && stack_.back().is_map && !stack_.back().key;
  }
  void Fail(int line, std::string message) {
    if (!error_) {
      error_ = Error{.kind = ErrorKind::kUsage,
                     .where = where_ + ":" + std::to_string(line + 1),
                     .message = std::move(message)};
    }
  }
  bool Charge(int line, std::size_t weight) {
    weight_ += weight;
    if (weight_ > kMaxWeight) {
      Fail(line, "the document is too large once its aliases are expanded");
    }
    return !error_;
  }
  void SetKey(const YAML::Mark& mark, std::string key, bool is_merge) {
    if (Charge(mark.line, kNodeWeight + key.size())) {
      stack_.back().key = std::move(key);
      stack_.back().key_is_merge = is_merge;
    }
  }
  void Open(const YAML::Mark& mark, const std::string& tag, std::string_view kind,
            YAML::anchor_t anchor, bool is_map);
  void Close(Json value);
  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value);
  void Place(int line, YAML::anchor_t anchor, Json value);
  static bool HasKeyTwice(const Json::Object& members, std::string& twice);
  bool Merge(Frame& frame);

  const std::string& where_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Json> anchors_;
  Json root_;
  std::size_t documents_ = 0;
  std::size_t weight_ = 0;
  std::optional<Error> error_;
};

void Builder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  if (error_) {
    return;
  }
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    return Fail(mark.line, "an alias must not stand inside the value it names");
  }
  if (!Charge(mark.line, WeightOf(found->second))) {
    return;
  }
  if (!NeedsKey()) {
    return Place(mark.line, 0, found->second);
  }
  if (!found->second.is_string()) {
    return Fail(mark.line, "a key must be a plain word");
  }
  SetKey(mark, found->second.string(), false);
}

void Builder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       const std::string& value) {
  if (error_) {
    return;
  }
  const bool plain = tag == "?";
  if (NeedsKey()) {
    SetKey(mark, value, plain && value == "<<");
    if (anchor != 0) {
      anchors_[anchor] = value;
    }
    return;
  }
  if (plain) {
    return Add(mark, anchor, PlainScalar(value));
  }
  if (tag.empty() || tag == "!" || tag == std::string(kTagPrefix) + "str") {
    return Add(mark, anchor, value);
  }
  if (tag.starts_with(kTagPrefix)) {
    if (auto typed = TaggedScalar(std::string_view(tag).substr(kTagPrefix.size()), value)) {
      return Add(mark, anchor, *std::move(typed));
    }
  }
  Fail(mark.line, "the tag " + QuotedStart(tag) + " is not supported for " + QuotedStart(value));
}

void Builder::Open(const YAML::Mark& mark, const std::string& tag, std::string_view kind,
                   YAML::anchor_t anchor, bool is_map) {
  if (error_) {
    return;
  }
  if (NeedsKey()) {
    return Fail(mark.line, "a key must be a plain word");
  }
  if (!tag.empty() && tag != "?" && tag != "!" &&
      tag != std::string(kTagPrefix) + std::string(kind)) {
    return Fail(mark.line, "the tag " + QuotedStart(tag) + " is not supported");
  }
  if (stack_.size() >= kMaxDepth) {
    return Fail(mark.line, "is nested over " + std::to_string(kMaxDepth) + " levels deep");
  }
  if (Charge(mark.line, kNodeWeight)) {
    Frame frame;
    frame.is_map = is_map;
    frame.line = mark.line;
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }
}

void Builder::OnMapEnd() {
  if (error_) {
    return;
  }
  Frame& frame = stack_.back();
  std::string twice;
  if (HasKeyTwice(frame.members, twice)) {
    return Fail(frame.line, "the key " + QuotedStart(twice) + " is given twice in one mapping");
  }
  if (Merge(frame)) {
    Close(Json(std::move(frame.members)));
  }
}

void Builder::Close(Json value) {
  const int line = stack_.back().line;
  const YAML::anchor_t anchor = stack_.back().anchor;
  stack_.pop_back();
  Place(line, anchor, std::move(value));
}

void Builder::Add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
  if (!error_ && Charge(mark.line, WeightOf(value))) {
    Place(mark.line, anchor, std::move(value));
  }
}

void Builder::Place(int line, YAML::anchor_t anchor, Json value) {
  if (anchor != 0) {
    if (!Charge(line, WeightOf(value))) {
      return;
    }
    anchors_[anchor] = value;
  }
  if (stack_.empty()) {
    ++documents_;
    root_ = std::move(value);
    return;
  }
  Frame& frame = stack_.back();
  if (!frame.is_map) {
    frame.items.push_back(std::move(value));
  } else if (frame.key_is_merge) {
    frame.merged.push_back(std::move(value));
    frame.key.reset();
    frame.key_is_merge = false;
  } else {
    frame.members.emplace_back(*std::move(frame.key), std::move(value));
    frame.key.reset();
  }
}

bool Builder::HasKeyTwice(const Json::Object& members, std::string& twice) {
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const Json::Member& member : members) {
    keys.push_back(member.first);
  }
  std::ranges::sort(keys);
  const auto found = std::ranges::adjacent_find(keys);
  if (found == keys.end()) {
    return false;
  }
  twice = *found;
  return true;
}

// Members of the merged mappings behind the own ones; earlier ones win.
bool Builder::Merge(Frame& frame) {
  std::map<std::string, bool, std::less<>> known;
  if (!frame.merged.empty()) {
    for (const Json::Member& member : frame.members) {
      known[member.first] = true;
    }
  }
  for (Json& merged : frame.merged) {
    Json::Array parts;
    if (merged.is_array()) {
      parts = std::move(merged.array());
    } else {
      parts.push_back(std::move(merged));
    }
    for (Json& part : parts) {
      if (!part.is_object()) {
        Fail(frame.line, "<< takes a mapping or a list of mappings");
        return false;
      }
      for (Json::Member& member : part.object()) {
        if (known.emplace(member.first, true).second) {
          frame.members.push_back(std::move(member));
        }
      }
    }
  }
  return true;
}

}  // namespace

Result<Json> ParseYaml(std::string_view text, const std::string& where) {
  Builder builder(where);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // A second document is enough to know; the parser finds them without end in some texts.
    while (!builder.error() && builder.documents() < 2 && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const std::string line = error.mark.is_null() ? "" : ":" + std::to_string(error.mark.line + 1);
    return UsageError(where + line, "malformed YAML: " + error.msg);
  } catch (const std::exception& error) {
    return UsageError(where, std::string("malformed YAML: ") + error.what());
  }
  if (builder.error()) {
    return std::unexpected(*builder.error());
  }
  if (builder.documents() > 1) {
    return UsageError(where, "must contain one YAML document and nothing else");
  }
  return builder.Take();
}

}  // namespace dynosim::config
