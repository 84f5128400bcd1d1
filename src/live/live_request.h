// SPDX-License-Identifier: Apache-2.0
// LiveRequest: one sequence that a client asked for. It is built once and never changes, so the
// frontend and an engine thread share it. What the worker will generate is a function of the
// request, never of time: the same ids are streamed, hashed into block names and told in KV events.
//
// A block is named by its sequence hash (chapter 10, section 5.1), so names need no table and agree
// between workers and routers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/transfer.h"
#include "live/clock.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

// Ids of generated tokens, [first, first + count), unless others are given: words of the built-in
// vocabulary.
inline constexpr std::uint32_t kFirstOutputToken = 1000;
inline constexpr std::uint32_t kOutputTokens = 1000;

// What a request will generate.
struct OutputPlan {
  enum class Kind : std::uint8_t { kRandom, kFixed };
  Kind kind = Kind::kRandom;
  std::uint64_t seed = 0;           // kRandom
  std::uint64_t first_ordinal = 0;  // tokens before this one were generated elsewhere
  // kFixed: these, repeated when the output is longer. kRandom: drawn from these; empty: the range.
  std::vector<std::uint32_t> ids;
  std::uint64_t reasoning_tokens = 0;  // leading tokens between the two markers, with them
  std::uint32_t reasoning_start = 0, reasoning_end = 0;

  std::uint32_t Token(std::uint64_t ordinal) const;
};

// The other half of a request whose prompt a worker of another process computes.
struct HandoffTerms {
  bool held = false;    // the prompt is done, its KV waits there
  double age_ms = 0.0;  // since the request came
  engine::TransferTerms transfer{};
};

struct LiveRequest {
  std::optional<MonotonicClock::Point> received;  // when this process had read it
  std::string model;                              // as the client named it
  std::vector<std::uint32_t> prompt;
  std::uint64_t output_tokens = 0;  // the most that is generated
  OutputPlan output;
  bool ends_by_itself = false;  // its end is a stop, not the limit
  std::uint64_t salt = 0;       // separates block names by LoRA adapter and cache salt; 0: none
  std::string lora;
  std::int32_t priority = 0;
  std::uint32_t dp_rank = workload::kNone;
  std::uint32_t worker = workload::kNone;  // asked for by the client
  std::optional<HandoffTerms> handoff{};   // of a decode worker's request
  // Block names of the planned sequence, in order.
  std::vector<std::uint64_t> blocks;

  // Fills `blocks` for at most `tokens_max` tokens of the sequence.
  void NameBlocks(std::uint64_t block_size, std::uint64_t tokens_max);
  std::uint32_t TokenAt(std::uint64_t position) const {
    return position < prompt.size() ? prompt[position] : output.Token(position - prompt.size());
  }
};

// The requests of one worker by the id that the engine knows them by.
class RequestTable final : public workload::RequestSource {
  // An id is a place in its low bits and a use count above, so that a late message about a finished
  // request does not meet its successor.
  static constexpr std::uint32_t kSlotBits = 20;

 public:
  // Takes a request in and returns it as the engine wants it.
  workload::Request Add(std::shared_ptr<const LiveRequest> request, double now_ms);
  void Remove(std::uint32_t id);
  const LiveRequest* Find(std::uint32_t id) const;
  std::size_t size() const { return count_; }
  // Ids of requests that are here at the same time have different places; places are small.
  static constexpr std::uint32_t kPlaceMask = (1U << kSlotBits) - 1;
  static std::size_t PlaceOf(std::uint32_t id) { return id & kPlaceMask; }

  std::optional<double> NextReadyMs() const override { return std::nullopt; }
  bool Exhausted() const override { return true; }
  bool Release(double, workload::Request&) override { return false; }
  void OnTerminal(std::uint32_t, double, workload::TerminalStatus, std::uint64_t) override {}
  void Blocks(std::uint32_t id, std::uint64_t block_size,
              std::vector<workload::BlockExtent>& out) const override;
  std::uint32_t RequestCount() const override { return static_cast<std::uint32_t>(slots_.size()); }
  bool SharesGeneratedBlocks() const override { return true; }
  std::string SessionName(std::uint32_t) const override { return {}; }
  std::string_view PolicyClassName(std::uint32_t) const override { return {}; }
  void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const override;
  std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const override;

 private:
  struct Slot {
    std::uint32_t id = workload::kNone;
    std::shared_ptr<const LiveRequest> request;
  };

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace dynosim::live
