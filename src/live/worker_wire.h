// SPDX-License-Identifier: Apache-2.0
// What travels between a frontend and a worker process: requests and cards as JSON, events as lines
// of text. Internal to this program; both ends are of one version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_link.h"

namespace dynosim::live {

// Route of worker `index` of a process, and of the list of its cards.
std::string WorkerPath(std::uint32_t index);
inline constexpr std::string_view kCardsPath = "/v1/worker/cards";

std::string RequestToJson(const LiveRequest& request, std::uint32_t rank);
// Blocks are not named yet.
Result<LiveRequest> RequestFromJson(std::string_view text);

// Route of worker `index` that takes "the other half is ready".
std::string ProceedPath(std::uint32_t index);
// `stream`: the number that the worker's process knows the stream by.
std::string ProceedToJson(std::uint64_t stream, const engine::TransferTerms& terms);
struct ProceedMessage {
  std::uint64_t stream = 0;
  engine::TransferTerms terms;
};
Result<ProceedMessage> ProceedFromJson(std::string_view text);

Json CardToJson(const WorkerCard& card);
Result<WorkerCard> CardFromJson(const Json& json, const std::string& where);

// "A 16", "T 1", "H 7", "V 7", "D", "F", "R text", "B text", "X text", each with a line break.
void AppendEvent(const StreamEvent& event, std::string& out);
// False for a line that is none of these.
bool ParseEvent(std::string_view line, StreamEvent& out);

}  // namespace dynosim::live
