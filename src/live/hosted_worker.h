// SPDX-License-Identifier: Apache-2.0
// HostedWorker: one mock worker of an engine host with the streams that it serves. It turns what
// its driver tells into stream events, KV events, forward-pass metrics and statistics. Belongs to
// the host's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_driver.h"
#include "live/worker_handoffs.h"
#include "live/worker_metrics.h"
#include "workload/request.h"

namespace dynosim::live {

// The requests of a host. Each is kept while somebody holds it: two workers may have the same one.
class SharedRequests {
 public:
  // Held once.
  workload::Request Add(std::shared_ptr<const LiveRequest> request, double now_ms) {
    const workload::Request added = table_.Add(std::move(request), now_ms);
    const std::size_t place = RequestTable::PlaceOf(added.id);
    if (place >= holds_.size()) {
      holds_.resize(place + 1, 0);
    }
    holds_[place] = 1;
    return added;
  }
  void Hold(std::uint32_t id) { ++holds_[RequestTable::PlaceOf(id)]; }
  void Drop(std::uint32_t id) {
    if (--holds_[RequestTable::PlaceOf(id)] == 0) {
      table_.Remove(id);
    }
  }
  const RequestTable& table() const { return table_; }

 private:
  RequestTable table_;
  std::vector<std::uint32_t> holds_;  // by place in the table
};

// Who a hosted worker is.
struct HostedPlace {
  std::uint32_t place = 0;  // in the host
  std::string name;         // in forward-pass metrics
  std::size_t channel = 0;  // first of its ranks' channels
  // Null: the worker serves whole requests.
  WorkerHandoffs* handoffs = nullptr;
};

class HostedWorker final : public PassSink {
 public:
  // All references outlive the worker; `batch` receives the events.
  HostedWorker(const HostOptions& options, const engine::EngineSettings& engine, HostedPlace place,
               SharedRequests& requests, std::vector<StreamEvent>& batch);

  WorkerDriver& driver() { return driver_; }
  const engine::EngineSettings& engine() const { return engine_; }

  // Whole requests. `rank` may be workload::kNone; `at_ms` is when the request came.
  void Submit(std::uint64_t stream, std::uint32_t rank, std::shared_ptr<const LiveRequest> request,
              double at_ms);
  void Cancel(std::uint64_t stream, double now_ms);

  // The rank of the next request that leaves the choice to the worker.
  std::uint32_t TakeTurn() { return next_rank_++ % driver_.ranks(); }
  // For what happens outside of passes.
  void Tell(StreamEvent::Kind kind, std::uint32_t id, std::string text, double now_ms);

  // Handoffs: a request comes to this worker, and leaves it for good.
  void Begin(std::uint32_t id, std::uint64_t stream, std::uint32_t rank, double entered_ms);
  void Abandon(std::uint32_t id, bool aborted);

  // An idle worker says once a second that it lives; returns when the next time is.
  double Heartbeat(double now_ms);
  // Requests that left during a pass are kept until it has told everything about them.
  void ForgetLeft();
  WorkerStats Stats() const;

  void OnAdmitted(const engine::Admission& admission, double now_ms) override;
  void OnKvEvents(std::uint32_t rank, const engine::KvEventBuffer& events,
                  std::size_t count) override;
  void OnRankPass(const RankPass& pass, double planned_ms, double end_ms, double now_ms) override;
  void OnPassEnd(double now_ms) override;
  void OnGauges(std::uint32_t rank, const engine::RankMetrics& metrics) override;
  // Everything that this worker holds fails.
  void OnStuck(double now_ms) override;

 private:
  struct Stream {
    std::uint64_t number = 0;
    std::uint32_t id = workload::kNone;  // kNone: nobody
    std::uint32_t rank = 0;
    bool admitted = false;
    bool left = false;
    double entered_ms = 0.0, admitted_ms = 0.0, first_ms = 0.0, last_ms = 0.0;
    std::uint64_t tokens = 0;
  };
  // Most streams of a pass see the same gap: it is observed once, with its weight.
  class GapRun {
   public:
    explicit GapRun(Histogram& histogram) : histogram_(histogram) {}
    void Add(double gap_s, std::uint64_t times) {
      if (times_ > 0 && gap_s != gap_s_) {
        Settle();
      }
      gap_s_ = gap_s;
      times_ += times;
    }
    void Settle() {
      if (times_ > 0) {
        histogram_.Observe(gap_s_, times_);
        times_ = 0;
      }
    }

   private:
    Histogram& histogram_;
    double gap_s_ = 0.0;
    std::uint64_t times_ = 0;
  };

  static std::size_t Place(std::uint32_t id) { return RequestTable::PlaceOf(id); }
  // A prefill worker's token is thrown away, and the decode worker finds the whole prompt there.
  bool prefill() const { return engine_.worker_role == engine::WorkerRole::kPrefill; }
  bool decode() const { return engine_.worker_role == engine::WorkerRole::kDecode; }
  // The stream of a request that is still here; null otherwise.
  Stream* Here(std::uint32_t id);
  StreamEvent EventOf(StreamEvent::Kind kind, const Stream& stream, double now_ms) const;
  void OnTokens(const engine::TokenGain& gain, double now_ms, RankStats& stats, GapRun& gaps);
  void OnEnd(const engine::Signal& signal, const engine::PassEffects& effects, double now_ms,
             RankStats& stats);
  void Leave(std::uint32_t id);
  void PublishPass(std::uint32_t rank, const engine::ForwardPassMetrics& metrics,
                   double duration_ms, double now_ms);

  const HostOptions& options_;
  const engine::EngineSettings& engine_;
  HostedPlace place_;
  SharedRequests& requests_;
  std::vector<StreamEvent>& batch_;
  std::vector<std::uint64_t> pass_counts_;  // messages by rank, heartbeats included
  double last_pass_ms_ = 0.0;
  std::vector<Stream> streams_;                // by place of the request in the table
  FlatMap<std::uint64_t, std::uint32_t> ids_;  // stream number -> request id
  std::vector<std::uint32_t> left_;
  std::uint32_t next_rank_ = 0;
  mutable std::mutex stats_mutex_;
  WorkerStats stats_;
  WorkerDriver driver_;
};

}  // namespace dynosim::live
