// SPDX-License-Identifier: Apache-2.0
// RequestSource: the admission side of a run. It owns all requests of a workload, says when the
// next one is ready, and reacts to terminal requests (closed loops, sessions, agentic graphs).
// Times are virtual milliseconds. One source serves one run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/request.h"

namespace dynosim::workload {

class AgenticSource;

class RequestSource {
 public:
  RequestSource() = default;
  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  virtual ~RequestSource() = default;

  // Time at which the next request can be released. A time in the past (or -infinity) means "now",
  // as in concurrency mode with a free slot. Empty while nothing can be released before some
  // in-flight request ends, or when the source is exhausted.
  virtual std::optional<double> NextReadyMs() const = 0;

  // True when no request will ever be released again.
  virtual bool Exhausted() const = 0;

  // Releases the next request that is ready at `now_ms`, in (ready time, authored order); false if
  // none is.
  virtual bool Release(double now_ms, Request& out) = 0;

  // Tells the source that a released request reached its terminal state. `emitted_tokens` is the
  // number of tokens that the client received.
  virtual void OnTerminal(std::uint32_t id, double now_ms, TerminalStatus status,
                          std::uint64_t emitted_tokens) = 0;

  // Names of the blocks of `block_size` tokens of the sequence of a released request, in order: all
  // complete prompt blocks, then the blocks that its planned output fills; the last extent is
  // kEndless when nobody else can share the generated blocks. Names of one block size say nothing
  // about those of another. Replaces the content of `out`.
  virtual void Blocks(std::uint32_t id, std::uint64_t block_size,
                      std::vector<BlockExtent>& out) const = 0;

  // Number of requests that the source may ever release (authored rows or turns).
  virtual std::uint32_t RequestCount() const = 0;

  // True when blocks of generated tokens of a running request can equal blocks of another request
  // (explicit output token ids). The engine then does not assume that generated blocks are private.
  virtual bool SharesGeneratedBlocks() const = 0;

  virtual std::string SessionName(std::uint32_t session) const = 0;
  virtual std::string_view PolicyClassName(std::uint32_t policy_class) const = 0;

  // Token ids of the prompt, and of output token `ordinal` (for KV event hashes and live workers).
  virtual void PromptTokens(std::uint32_t id, std::vector<std::uint32_t>& out) const = 0;
  virtual std::uint32_t OutputToken(std::uint32_t id, std::uint64_t ordinal) const = 0;

  // True when requests are released in the order of (arrival time, id).
  virtual bool InOrder() const { return false; }

  // A source that reads its requests while the run goes on keeps names only as long as anybody may
  // meet them again. When it wants to forget, the run tells it all groups of names that caches and
  // held requests have, in any order, with repetitions.
  virtual bool WantsHeldGroups() const { return false; }
  virtual void OnHeldGroups(std::span<const std::uint32_t> /*groups*/) {}
  // What stopped such a source before its end, else null.
  virtual const Error* Problem() const { return nullptr; }

  // The source itself when it replays an agentic graph, else nullptr. Reports have more to tell
  // then, and are ordered by request id.
  virtual const AgenticSource* Agentic() const { return nullptr; }
};

}  // namespace dynosim::workload
