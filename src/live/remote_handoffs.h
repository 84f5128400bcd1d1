// SPDX-License-Identifier: Apache-2.0
// RemoteHandoffs: the way of each request through prefill and decode workers of other processes
// (chapter 95, section 12). A dispatcher for each pool places it; this class says what comes next:
//
//   vllm    prefill worker computes -> held -> decode worker reserves -> transfer -> active
//   sglang  decode worker reserves -> prefill worker computes -> held -> transfer -> active
//
// Once the prompt is active the prefill worker lets go of it. The end of either half ends the other
// one. Belongs to the server's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/result.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/live_request.h"

namespace dynosim::live {

class RemoteHandoffs {
 public:
  // Requests come through `decode`, which is told to use this object.
  RemoteHandoffs(Dispatcher& prefill, Dispatcher& decode, std::function<double()> now_ms);
  RemoteHandoffs(const RemoteHandoffs&) = delete;
  RemoteHandoffs& operator=(const RemoteHandoffs&) = delete;

  Dispatcher& prefill() { return prefill_; }
  std::size_t open() const { return handoffs_.size(); }

  // `stream` is a number of the decode dispatcher, not placed yet.
  Result<void> Begin(std::uint64_t stream, std::shared_ptr<const LiveRequest> request);
  // kReserved and kActive.
  void OnDecodeWorker(const StreamEvent& event);
  // The stream has ended: its prefill worker lets go of it.
  void End(std::uint64_t stream);

 private:
  class Source;
  struct Handoff {
    std::shared_ptr<const LiveRequest> request;
    double begun_ms = 0.0;
    std::uint64_t source = 0;  // number of the prefill dispatcher; 0: none
    bool active = false;
  };

  void OnPrefillWorker(std::uint64_t stream, const StreamEvent& event);
  Result<void> SubmitPrompt(std::uint64_t stream, Handoff& handoff);
  Result<void> Reserve(std::uint64_t stream, const Handoff& handoff, HandoffTerms terms);

  Dispatcher& prefill_;
  Dispatcher& decode_;
  std::function<double()> now_ms_;
  std::map<std::uint64_t, Handoff> handoffs_;  // by number of the decode dispatcher
};

}  // namespace dynosim::live
