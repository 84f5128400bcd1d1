// SPDX-License-Identifier: Apache-2.0
// HandoffHalf: the part that one worker has in handoffs whose other worker is in another process
// (chapter 95, section 12). A prefill worker computes a prompt, says that it is held and keeps its
// KV until it hears that the other half is ready. A decode worker reserves blocks for the prompt,
// waits for the source if it has to and then for the modelled transfer, and decodes. Either gives
// up when that takes longer than the timeout. Belongs to the host's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/transfer.h"
#include "live/hosted_worker.h"
#include "live/live_request.h"
#include "live/worker_handoffs.h"

namespace dynosim::live {

class HandoffHalf : public WorkerHandoffs {
 public:
  // Of a prefill or a decode worker. `requests` outlives it.
  static std::unique_ptr<HandoffHalf> Make(const engine::EngineSettings& engine, double timeout_ms,
                                           SharedRequests& requests);

  // Before anything else; the worker outlives the object.
  void Attach(HostedWorker& worker) { worker_ = &worker; }

  // `rank` may be workload::kNone; `at_ms` is when the request came.
  virtual void Submit(std::uint64_t stream, std::uint32_t rank,
                      std::shared_ptr<const LiveRequest> request, double at_ms) = 0;
  virtual void Cancel(std::uint64_t stream, double now_ms) = 0;
  // The other half is ready since `at_ms`.
  virtual void Proceed(std::uint64_t stream, const engine::TransferTerms& terms, double at_ms) = 0;
  // Carries out what is due; NextMs is when something will be, infinity if only commands or ends of
  // passes bring more.
  virtual void Act(double now_ms) = 0;
  virtual double NextMs() const = 0;
  // The worker rests: if nothing from outside is awaited either, frees it or fails what it holds.
  virtual void Unstick(double now_ms) = 0;

  using WorkerHandoffs::Cancel;
  bool WantsEvents(std::uint32_t /*place*/) const override { return false; }
  void OnKvEvents(std::uint32_t, std::uint32_t, const engine::KvEventBuffer&) override {}

 protected:
  HostedWorker& worker() const { return *worker_; }

 private:
  HostedWorker* worker_ = nullptr;
};

}  // namespace dynosim::live
