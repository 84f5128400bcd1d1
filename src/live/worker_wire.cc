// SPDX-License-Identifier: Apache-2.0
#include "live/worker_wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "config/decode.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_link.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

Json Tokens(const std::vector<std::uint32_t>& ids) {
  Json out(Json::Array{});
  out.array().reserve(ids.size());
  for (const std::uint32_t id : ids) {
    out.array().emplace_back(id);
  }
  return out;
}

Result<void> ReadTokens(const Json* list, const std::string& where,
                        std::vector<std::uint32_t>& out) {
  if (list == nullptr || !list->is_array()) {
    return FailedError(where, "token ids must be an array");
  }
  for (const Json& item : list->array()) {
    if (!item.is_integer() || item.number() < 0 || item.number() > 4294967295.0) {
      return FailedError(where, "a token id is out of range");
    }
    out.push_back(static_cast<std::uint32_t>(item.number()));
  }
  return {};
}

void WriteTerms(const engine::TransferTerms& terms, Json& out) {
  if (terms.bytes_per_token) {
    out.Add("kv_bytes_per_token", *terms.bytes_per_token);
  }
  if (terms.bandwidth_gbps) {
    out.Add("kv_transfer_bandwidth", *terms.bandwidth_gbps);
  }
  out.Add("destination_missing", terms.timing == engine::TransferTiming::kDestinationMissing);
}

void ReadTerms(config::Decoder& decoder, engine::TransferTerms& out) {
  decoder.Field("kv_bytes_per_token", out.bytes_per_token, config::kPositive);
  decoder.Field("kv_transfer_bandwidth", out.bandwidth_gbps, config::kNonNegative);
  bool missing = false;
  decoder.Field("destination_missing", missing);
  out.timing =
      missing ? engine::TransferTiming::kDestinationMissing : engine::TransferTiming::kFullPrompt;
}

template <class T>
bool ReadNumber(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr std::array kRoles = {
    config::Choice<engine::WorkerRole>{"aggregated", engine::WorkerRole::kAggregated},
    config::Choice<engine::WorkerRole>{"prefill", engine::WorkerRole::kPrefill},
    config::Choice<engine::WorkerRole>{"decode", engine::WorkerRole::kDecode}};
constexpr std::array kBackends = {
    config::Choice<engine::Backend>{"vllm", engine::Backend::kVllm},
    config::Choice<engine::Backend>{"sglang", engine::Backend::kSglang},
    config::Choice<engine::Backend>{"trtllm", engine::Backend::kTrtllm}};

}  // namespace

std::string ProceedPath(std::uint32_t index) { return fmt::format("/v1/worker/{}/proceed", index); }

std::string ProceedToJson(std::uint64_t stream, const engine::TransferTerms& terms) {
  Json out;
  out.Add("stream", std::to_string(stream));
  WriteTerms(terms, out);
  return DumpJson(out);
}

Result<ProceedMessage> ProceedFromJson(std::string_view text) {
  const std::string where = "message";
  DYNO_TRY(const Json json, ParseJson(text, where));
  if (!json.is_object()) {
    return FailedError(where, "must be a JSON object");
  }
  ProceedMessage out;
  std::string stream;
  config::Decoder decoder(json, "");
  decoder.Require("stream");
  decoder.Field("stream", stream);
  ReadTerms(decoder, out.terms);
  DYNO_TRY_VOID(decoder.Finish(where));
  if (!ReadNumber(stream, out.stream)) {
    return FailedError(where, "stream must be a number in quotes");
  }
  return out;
}

std::string WorkerPath(std::uint32_t index) { return fmt::format("/v1/worker/{}/streams", index); }

std::string RequestToJson(const LiveRequest& r, std::uint32_t rank) {
  Json out;
  out.Add("model", r.model);
  out.Add("lora", r.lora);
  out.Add("output_tokens", r.output_tokens);
  out.Add("salt", r.salt);
  out.Add("priority", std::to_string(r.priority));
  out.Add("dp_rank", rank);
  out.Add("seed", r.output.seed);
  out.Add("first_ordinal", r.output.first_ordinal);
  out.Add("reasoning_tokens", r.output.reasoning_tokens);
  out.Add("reasoning_start", r.output.reasoning_start);
  out.Add("reasoning_end", r.output.reasoning_end);
  out.Add("fixed", r.output.kind == OutputPlan::Kind::kFixed);
  out.Add("ids", Tokens(r.output.ids));
  if (r.handoff) {
    Json handoff;
    handoff.Add("held", r.handoff->held);
    handoff.Add("age_ms", r.handoff->age_ms);
    WriteTerms(r.handoff->transfer, handoff);
    out.Add("handoff", std::move(handoff));
  }
  out.Add("token_ids", Tokens(r.prompt));
  return DumpJson(out);
}

Result<LiveRequest> RequestFromJson(std::string_view text) {
  const std::string where = "request";
  DYNO_TRY(const Json json, ParseJson(text, where));
  if (!json.is_object()) {
    return FailedError(where, "must be a JSON object");
  }
  LiveRequest out;
  std::string priority = "0";
  bool fixed = false;
  config::Decoder decoder(json, "");
  decoder.Field("model", out.model);
  decoder.Field("lora", out.lora);
  decoder.Field("output_tokens", out.output_tokens);
  decoder.Field("salt", out.salt);
  decoder.Field("priority", priority);
  decoder.Field("dp_rank", out.dp_rank);
  decoder.Field("seed", out.output.seed);
  decoder.Field("first_ordinal", out.output.first_ordinal);
  decoder.Field("reasoning_tokens", out.output.reasoning_tokens);
  decoder.Field("reasoning_start", out.output.reasoning_start);
  decoder.Field("reasoning_end", out.output.reasoning_end);
  decoder.Field("fixed", fixed);
  if (decoder.Has("handoff")) {
    HandoffTerms& handoff = out.handoff.emplace();
    decoder.Object("handoff", [&](config::Decoder& inner) {
      inner.Field("held", handoff.held);
      inner.Field("age_ms", handoff.age_ms, config::kNonNegative);
      ReadTerms(inner, handoff.transfer);
    });
  }
  const Json* ids = decoder.Raw("ids");
  const Json* prompt = decoder.Raw("token_ids");
  DYNO_TRY_VOID(decoder.Finish(where));
  out.output.kind = fixed ? OutputPlan::Kind::kFixed : OutputPlan::Kind::kRandom;
  if (ids != nullptr) {
    DYNO_TRY_VOID(ReadTokens(ids, where, out.output.ids));
  }
  DYNO_TRY_VOID(ReadTokens(prompt, where, out.prompt));
  if (!ReadNumber(priority, out.priority) || out.prompt.empty()) {
    return FailedError(where, "priority must be an integer and token_ids not empty");
  }
  return out;
}

Json CardToJson(const WorkerCard& card) {
  Json out;
  out.Add("id", card.id);
  out.Add("role", std::string(engine::WorkerRoleName(card.role)));
  out.Add("backend", std::string(engine::BackendName(card.backend)));
  if (card.role == engine::WorkerRole::kPrefill) {
    WriteTerms(card.transfer, out);
  }
  out.Add("ranks", card.ranks);
  out.Add("block_size", card.block_size);
  out.Add("total_blocks", card.total_blocks);
  out.Add("max_model_len", card.max_model_len);
  out.Add("max_num_seqs", card.max_num_seqs);
  out.Add("max_num_batched_tokens", card.max_num_batched_tokens);
  out.Add("members", card.members);
  out.Add("kv_events_port", std::uint32_t{card.kv_events_port});
  out.Add("kv_replay_port", std::uint32_t{card.kv_replay_port});
  return out;
}

Result<WorkerCard> CardFromJson(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    return FailedError(where, "a worker card must be a JSON object");
  }
  WorkerCard out;
  config::Decoder decoder(json, "");
  decoder.Require("id");
  decoder.Field("id", out.id);
  decoder.Field("role", out.role, kRoles);
  decoder.Field("backend", out.backend, kBackends);
  ReadTerms(decoder, out.transfer);
  decoder.Field("ranks", out.ranks, config::kPositive);
  decoder.Field("block_size", out.block_size, config::kPositive);
  decoder.Field("total_blocks", out.total_blocks);
  decoder.Field("max_model_len", out.max_model_len);
  decoder.Field("max_num_seqs", out.max_num_seqs);
  decoder.Field("max_num_batched_tokens", out.max_num_batched_tokens);
  decoder.Field("members", out.members, config::kPositive);
  std::uint32_t kv_events_port = 0;
  std::uint32_t kv_replay_port = 0;
  decoder.Field("kv_events_port", kv_events_port);
  decoder.Field("kv_replay_port", kv_replay_port);
  DYNO_TRY_VOID(decoder.Finish(where));
  if (std::max(kv_events_port, kv_replay_port) > 65535) {
    return FailedError(where, "a port must be at most 65535");
  }
  out.kv_events_port = static_cast<std::uint16_t>(kv_events_port);
  out.kv_replay_port = static_cast<std::uint16_t>(kv_replay_port);
  return out;
}

void AppendEvent(const StreamEvent& event, std::string& out) {
  switch (event.kind) {
    case StreamEvent::Kind::kAdmitted:
      out += fmt::format("A {}\n", event.amount);
      return;
    case StreamEvent::Kind::kTokens:
      out += fmt::format("T {}\n", event.amount);
      return;
    case StreamEvent::Kind::kHeld:
      out += fmt::format("H {}\n", event.amount);
      return;
    case StreamEvent::Kind::kReserved:
      out += fmt::format("V {}\n", event.amount);
      return;
    case StreamEvent::Kind::kActive:
      out += "D\n";
      return;
    case StreamEvent::Kind::kFinished:
      out += "F\n";
      return;
    case StreamEvent::Kind::kRejected:
      out += "R " + event.text + "\n";
      return;
    case StreamEvent::Kind::kRefused:
      out += "B " + event.text + "\n";
      return;
    case StreamEvent::Kind::kFailed:
    case StreamEvent::Kind::kLost:
      out += "X " + event.text + "\n";
      return;
  }
}

bool ParseEvent(std::string_view line, StreamEvent& out) {
  if (line.empty() || (line.size() > 1 && line[1] != ' ')) {
    return false;
  }
  const std::string_view rest = line.substr(std::min<std::size_t>(2, line.size()));
  switch (line[0]) {
    case 'A':
      out.kind = StreamEvent::Kind::kAdmitted;
      return ReadNumber(rest, out.amount);
    case 'T':
      out.kind = StreamEvent::Kind::kTokens;
      return ReadNumber(rest, out.amount);
    case 'H':
      out.kind = StreamEvent::Kind::kHeld;
      return ReadNumber(rest, out.amount);
    case 'V':
      out.kind = StreamEvent::Kind::kReserved;
      return ReadNumber(rest, out.amount);
    case 'D':
      out.kind = StreamEvent::Kind::kActive;
      return true;
    case 'F':
      out.kind = StreamEvent::Kind::kFinished;
      return true;
    case 'R':
      out.kind = StreamEvent::Kind::kRejected;
      break;
    case 'B':
      out.kind = StreamEvent::Kind::kRefused;
      break;
    case 'X':
      out.kind = StreamEvent::Kind::kFailed;
      break;
    default:
      return false;
  }
  out.text = std::string(rest);
  return true;
}

}  // namespace dynosim::live
