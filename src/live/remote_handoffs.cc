// SPDX-License-Identifier: Apache-2.0
#include "live/remote_handoffs.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_link.h"

namespace dynosim::live {

// Hears of a request's prefill worker.
class RemoteHandoffs::Source final : public StreamListener {
 public:
  Source(RemoteHandoffs& handoffs, std::uint64_t stream) : handoffs_(handoffs), stream_(stream) {}
  void OnEvent(std::uint32_t /*index*/, const StreamEvent& event) override {
    handoffs_.OnPrefillWorker(stream_, event);
  }
  void OnBatchEnd() override {}

 private:
  RemoteHandoffs& handoffs_;
  std::uint64_t stream_;
};

RemoteHandoffs::RemoteHandoffs(Dispatcher& prefill, Dispatcher& decode,
                               std::function<double()> now_ms)
    : prefill_(prefill), decode_(decode), now_ms_(std::move(now_ms)) {
  decode_.UseHandoffs(*this);
}

Result<void> RemoteHandoffs::Begin(std::uint64_t stream,
                                   std::shared_ptr<const LiveRequest> request) {
  const bool source_first = decode_.AnyCard()->backend != engine::Backend::kSglang;
  Handoff& handoff = handoffs_[stream];
  handoff = {.request = std::move(request), .begun_ms = now_ms_()};
  return source_first ? SubmitPrompt(stream, handoff) : Reserve(stream, handoff, {});
}

Result<void> RemoteHandoffs::SubmitPrompt(std::uint64_t stream, Handoff& handoff) {
  if (prefill_.available() == 0) {
    return FailedError("", "no prefill worker is there");
  }
  DYNO_TRY(handoff.source,
           prefill_.Submit(handoff.request, std::make_shared<Source>(*this, stream), 0));
  return {};
}

Result<void> RemoteHandoffs::Reserve(std::uint64_t stream, const Handoff& handoff,
                                     HandoffTerms terms) {
  terms.age_ms = now_ms_() - handoff.begun_ms;
  auto request = std::make_shared<LiveRequest>(*handoff.request);
  request->handoff = terms;
  return decode_.Place(stream, std::move(request));
}

void RemoteHandoffs::OnPrefillWorker(std::uint64_t stream, const StreamEvent& event) {
  const auto found = handoffs_.find(stream);
  if (found == handoffs_.end()) {
    return;
  }
  Handoff& handoff = found->second;
  if (event.kind == StreamEvent::Kind::kAdmitted) {
    StreamEvent own = event;
    own.stream = stream;
    decode_.OnBatch({own});
  } else if (event.kind == StreamEvent::Kind::kHeld) {
    const engine::TransferTerms terms = prefill_.CardOf(handoff.source)->transfer;
    if (decode_.CardOf(stream) != nullptr) {
      decode_.Proceed(stream, terms);
    } else if (const auto placed = Reserve(stream, handoff, {.held = true, .transfer = terms});
               !placed) {
      decode_.Abort(stream, {.kind = StreamEvent::Kind::kLost, .text = placed.error().Text()});
    }
  } else if (IsEnd(event.kind)) {
    handoff.source = 0;
    if (!handoff.active) {
      decode_.Abort(stream, event);
    }
  }
}

void RemoteHandoffs::OnDecodeWorker(const StreamEvent& event) {
  const auto found = handoffs_.find(event.stream);
  if (found == handoffs_.end()) {
    return;
  }
  Handoff& handoff = found->second;
  if (event.kind == StreamEvent::Kind::kActive) {
    handoff.active = true;
    if (handoff.source != 0) {
      prefill_.Proceed(handoff.source, {});
    }
  } else if (handoff.source == 0) {
    if (const auto submitted = SubmitPrompt(event.stream, handoff); !submitted) {
      decode_.Abort(event.stream,
                    {.kind = StreamEvent::Kind::kLost, .text = submitted.error().Text()});
    }
  }
}

void RemoteHandoffs::End(std::uint64_t stream) {
  const auto found = handoffs_.find(stream);
  if (found != handoffs_.end()) {
    const std::uint64_t source = found->second.source;
    const bool active = found->second.active;
    handoffs_.erase(found);
    if (source != 0 && !active) {
      prefill_.Cancel(source);
    }
  }
}

}  // namespace dynosim::live
