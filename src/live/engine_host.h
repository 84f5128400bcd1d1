// SPDX-License-Identifier: Apache-2.0
// EngineHost: one thread that drives mock workers in real time (chapter 95, section 2). Commands
// come from any thread and are applied at once; a pass ends at an absolute deadline of the
// monotonic clock. What happens goes out in batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/clock.h"
#include "live/handoff_coordinator.h"
#include "live/live_request.h"
#include "live/worker_metrics.h"
#include "live/zmq_publisher.h"

namespace dynosim::live {

// Something that happened to a stream: one sequence as its client numbers it.
struct StreamEvent {
  enum class Kind : std::uint8_t {
    kAdmitted,  // amount: prompt tokens found in the cache
    kTokens,    // amount: tokens that came, after all earlier ones
    kHeld,      // prefill worker: the prompt is done and waits for the handoff
    kReserved,  // decode worker: the prompt has its blocks
    kActive,    // decode worker: the prompt has come, decoding begins
    kFinished,  // all tokens have come
    kRejected,  // the engine will never serve it; text says why
    kRefused,   // a router's limits refuse it now; text says why
    kFailed,    // the worker broke; text says why
    kLost,      // the worker has gone; the request can go on elsewhere
  };
  Kind kind = Kind::kTokens;
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  std::uint64_t stream = 0;
  std::uint64_t amount = 0;
  double at_ms = 0.0;  // host clock
  std::string text{};
};

// No event of the stream follows.
constexpr bool IsEnd(StreamEvent::Kind kind) { return kind >= StreamEvent::Kind::kFinished; }

// Blocks that a rank stored or removed, as a router wants to know it.
struct KvChange {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  bool stored = true;
  std::vector<std::uint64_t> blocks;
};

// Chapter 95, section 12.
inline constexpr double kHandoffTimeoutMs = 300000.0;

struct HostOptions {
  engine::EngineSettings engine{};
  std::uint32_t workers = 1;
  // Prefill or decode workers whose other half is elsewhere give a handoff up after this time.
  double handoff_timeout_ms = kHandoffTimeoutMs;
  // Instead of them: a prefill and a decode pool. Their workers are numbered in this order, and all
  // requests go to worker 0, for both pools.
  std::optional<HandoffOptions> pools{};
  bool keep_lateness = false;
  // Null: not published. One channel per rank, worker by worker; KV events have no channels for
  // decode workers.
  ZmqPublisher* kv_events = nullptr;
  ZmqPublisher* pass_metrics = nullptr;
  bool positional_kv_events = false;
  double startup_ms = 0.0;  // workers accept requests at once and start working then
  // Receives batches on the host's thread, in order. Must not wait for the host.
  std::function<void(std::vector<StreamEvent>&&)> deliver;
  // The same for changes of the caches; empty: nobody wants them.
  std::function<void(std::vector<KvChange>&&)> deliver_kv{};
};

class EngineHost {
 public:
  explicit EngineHost(HostOptions options);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;
  // Stops the thread; requests that are still in flight are dropped.
  ~EngineHost();

  void Start();
  void Stop();

  const MonotonicClock& clock() const;
  // `rank` may be workload::kNone: ranks of the worker take turns then.
  void Submit(std::uint32_t worker, std::uint32_t rank, std::uint64_t stream,
              std::shared_ptr<const LiveRequest> request);
  // No event of the stream follows, except those that are on their way already.
  void Cancel(std::uint32_t worker, std::uint64_t stream);
  // The other half of the stream's handoff is ready (WorkerLink::Proceed).
  void Proceed(std::uint32_t worker, std::uint64_t stream, const engine::TransferTerms& terms);

  bool started_up() const;
  WorkerStats Stats(std::uint32_t worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dynosim::live
