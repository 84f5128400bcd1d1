// SPDX-License-Identifier: Apache-2.0
#include "live/output_planner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text_file.h"
#include "config/decode.h"
#include "live/api_request.h"
#include "live/live_request.h"

namespace dynosim::live {

namespace {

constexpr std::string_view kReplayAnnotation = "output_replay_id:";

std::uint64_t HashOf(std::initializer_list<std::uint64_t> words) {
  return Xxh3(std::as_bytes(std::span(words.begin(), words.size())), 0);
}

std::optional<std::uint64_t> Unsigned(const Json* value) {
  if (value == nullptr || !value->is_integer() || value->number() < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value->number());
}

Result<std::vector<std::uint32_t>> Ids(const Json& list, const std::string& where) {
  std::vector<std::uint32_t> out;
  for (const Json& item : list.array()) {
    const std::optional<std::uint64_t> id = Unsigned(&item);
    if (!id || *id > 0xFFFFFFFFULL) {
      return UsageError(where, "output_token_ids must be token ids, got " + config::Shown(item));
    }
    out.push_back(static_cast<std::uint32_t>(*id));
  }
  return out;
}

}  // namespace

Result<ReasoningOptions> ParseReasoning(std::string_view text) {
  constexpr std::string_view kFlag = "--reasoning";
  DYNO_TRY(const Json json, ParseJson(text, std::string(kFlag)));
  if (!json.is_object()) {
    return UsageError(std::string(kFlag), "must be a JSON object");
  }
  ReasoningOptions out;
  config::Decoder decoder(json, "");
  decoder.Require("start_thinking_token_id");
  decoder.Require("end_thinking_token_id");
  decoder.Require("thinking_ratio");
  decoder.Field("start_thinking_token_id", out.start_token);
  decoder.Field("end_thinking_token_id", out.end_token);
  decoder.Field("thinking_ratio", out.ratio, config::kShare);
  DYNO_TRY_VOID(decoder.Finish(kFlag));
  return out;
}

Result<ReplayTable> ReplayTable::Load(const std::string& path) {
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  ReplayTable table;
  FlatMap<std::string, std::uint64_t> turns;
  std::string_view rest = file.Text();
  for (std::uint64_t line = 0; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const std::string where = path + ":" + std::to_string(line + 1);
    DYNO_TRY(const Json row, ParseJson(text, where));
    if (!row.is_object()) {
      return UsageError(where, "a row must be a JSON object");
    }
    std::string key = "line:" + std::to_string(line);
    if (const Json* session = row.Find("session_id"); session != nullptr && session->is_string()) {
      key = session->string() + ":" + std::to_string(turns[session->string()]++);
    }
    if (const Json* id = row.Find("request_id"); id != nullptr && id->is_string()) {
      key = id->string();
    }
    const Json* ids = row.Find("output_token_ids");
    if (ids == nullptr || ids->is_null()) {
      continue;
    }
    if (!ids->is_array() || ids->array().empty()) {
      return UsageError(where, "output_token_ids must be a non-empty array");
    }
    const Json* length = row.Find("output_length");
    if (Unsigned(length != nullptr ? length : row.Find("output_tokens")) != ids->array().size()) {
      return UsageError(where, fmt::format("output_length must be {}, the number of "
                                           "output_token_ids",
                                           ids->array().size()));
    }
    DYNO_TRY(auto parsed, Ids(*ids, where));
    if (!table.by_key_.TryInsert(key, table.rows_.size()).second) {
      return UsageError(where, "the key '" + key + "' is there twice");
    }
    table.rows_.push_back(std::move(parsed));
  }
  return table;
}

const std::vector<std::uint32_t>* ReplayTable::Find(std::string_view key) const {
  const std::size_t* place = by_key_.Find(std::string(key));
  return place == nullptr ? nullptr : &rows_[*place];
}

std::uint32_t ReplayTable::LargestId() const {
  std::uint32_t largest = 0;
  for (const auto& row : rows_) {
    largest = std::max(largest, std::ranges::max(row));
  }
  return largest;
}

void OutputPlanner::Plan(const ApiRequest& request, std::uint32_t choice, LiveRequest& out) {
  OutputPlan& plan = out.output;
  plan.seed = request.seed ? HashOf({options_.seed, 1, *request.seed, choice})
                           : HashOf({options_.seed, 0, sequences_});
  plan.ids = tokenizer_.output_ids();
  ++sequences_;
  for (const std::string& annotation : request.annotations) {
    if (!annotation.starts_with(kReplayAnnotation)) {
      continue;
    }
    const std::string key = annotation.substr(kReplayAnnotation.size());
    const auto* ids = options_.replay ? options_.replay->Find(key) : nullptr;
    if (ids != nullptr) {
      plan.kind = OutputPlan::Kind::kFixed;
      plan.ids = *ids;
      out.output_tokens = ids->size();
      return;
    }
    std::fprintf(stderr, "dynosim: warning: no recorded answer for '%s'; random tokens instead\n",
                 key.c_str());
  }
  if (options_.echo) {
    plan.kind = OutputPlan::Kind::kFixed;
    plan.ids = request.echo_tokens.empty() ? out.prompt : request.echo_tokens;
    std::erase_if(plan.ids, [&](std::uint32_t id) { return tokenizer_.IsSpecial(id); });
    if (plan.ids.empty()) {  // the prompt is nothing but marks
      plan.ids.push_back(tokenizer_.output_ids().front());
    }
    out.ends_by_itself = plan.ids.size() <= out.output_tokens;
    out.output_tokens = std::min<std::uint64_t>(out.output_tokens, plan.ids.size());
    return;
  }
  if (options_.reasoning && request.max_tokens) {
    const std::uint64_t limit = *request.max_tokens;
    const auto share = static_cast<std::uint64_t>(
        std::floor(options_.reasoning->ratio * static_cast<double>(limit)));
    plan.reasoning_tokens = share == 0 || limit < 2 ? 0 : std::max<std::uint64_t>(share, 2);
    plan.reasoning_start = options_.reasoning->start_token;
    plan.reasoning_end = options_.reasoning->end_token;
  }
}

}  // namespace dynosim::live
