// SPDX-License-Identifier: Apache-2.0
// Dispatcher: which worker serves a sequence, and who hears of what happens to it. It keeps the
// load of every worker from what it has sent and heard, and refuses work when every worker is busy
// (chapter 95, 7.2). Belongs to the frontend's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/worker_link.h"
#include "router/config.h"
#include "router/router.h"
#include "workload/request.h"

namespace dynosim::live {

// Policies that follow workers as they come and go; others are a router::Router over a fixed set.
enum class RouterMode : std::uint8_t { kRoundRobin, kRandom, kLeastLoaded };

// When a worker counts as busy; any one exceeded limit is enough. Absent limits do not apply.
struct BusyLimits {
  std::optional<double> active_decode_blocks{};          // share of all blocks of a worker
  std::optional<std::uint64_t> active_prefill_tokens{};  // prompts without a token yet
  std::optional<double> active_prefill_tokens_frac{};    // the same, of max_num_batched_tokens
  std::optional<std::uint64_t> requests{};               // in flight on the worker
};

// Hears of one sequence. Held weakly by nobody: the dispatcher keeps it until the sequence ended.
class StreamListener {
 public:
  StreamListener() = default;
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;
  virtual ~StreamListener() = default;
  virtual void OnEvent(std::uint32_t index, const StreamEvent& event) = 0;
  // After all events of a batch.
  virtual void OnBatchEnd() = 0;
};

struct WorkerLoad {
  std::uint64_t requests = 0;
  std::uint64_t prefill_tokens = 0;
  std::uint64_t blocks = 0;  // of requests that are decoding
};

class RemoteHandoffs;

class Dispatcher {
 public:
  Dispatcher(RouterMode mode, std::uint64_t seed) : mode_(mode), random_(seed) {}

  // Returns the worker's place.
  std::uint32_t AddWorker(std::unique_ptr<WorkerLink> link);
  // Streams on it are lost.
  void RemoveWorker(std::uint32_t place);
  // A worker that failed is left out for a while.
  void SetAside(std::uint32_t place, bool aside);

  // Decode workers need prompts that others compute: `handoffs` brings them. It outlives streams.
  void UseHandoffs(RemoteHandoffs& handoffs) { handoffs_ = &handoffs; }
  // Of all workers.
  engine::WorkerRole role() const;
  // A request can be served now.
  bool ready() const;

  const WorkerLoad& LoadOf(std::uint32_t place) const { return workers_[place].load; }
  // Workers that can be chosen, and those that exist.
  std::size_t available() const;
  std::size_t size() const;
  // Any worker that exists; null without one. All of them serve the same model.
  const WorkerCard* AnyCard() const;
  // Prefill workers too.
  void ForEach(const std::function<void(const WorkerCard&)>& f) const;

  // Requests are placed by a policy of the router module from now on. The router is made anew when
  // workers come or go: `keep_caches` keeps what is known of the caches of the others for it. All
  // workers must be of one shape then.
  void UsePolicy(const router::RouterSettings& settings, bool keep_caches,
                 std::function<double()> now_ms);
  bool WantsKvEvents() const { return router_ != nullptr && router_->WantsEvents(); }
  // `worker` is a place.
  void OnKvChanges(const std::vector<KvChange>& changes);
  // Events that the router has been told, by what they said.
  std::uint64_t kv_stored() const { return kv_stored_; }
  std::uint64_t kv_removed() const { return kv_removed_; }
  std::uint64_t pending() const { return router_ == nullptr ? 0 : router_->Pending(); }

  const BusyLimits& limits() const { return limits_; }
  // Those of decode workers' prompts hold for the workers that compute them.
  void set_limits(const BusyLimits& limits);
  bool AllBusy() const;

  // Sends a sequence to a worker, or queues it where the router does. `index` is what the listener
  // knows it by. Returns its number, or why the router refuses it.
  Result<std::uint64_t> Submit(std::shared_ptr<const LiveRequest> request,
                               std::shared_ptr<StreamListener> listener, std::uint32_t index);
  // The listener hears nothing more of it.
  void Cancel(std::uint64_t stream);

  // Handoffs. Sends a stream that waits for its prompt to a decode worker; the worker that has or
  // computes a stream; "the other half is ready" for it, false when it has ended; and its end for a
  // reason that its own worker does not know.
  Result<void> Place(std::uint64_t stream, std::shared_ptr<const LiveRequest> request);
  const WorkerCard* CardOf(std::uint64_t stream);
  bool Proceed(std::uint64_t stream, const engine::TransferTerms& terms);
  void Abort(std::uint64_t stream, const StreamEvent& event);

  void OnBatch(const std::vector<StreamEvent>& batch);
  std::uint64_t in_flight() const { return in_flight_; }

 private:
  struct Worker {
    std::unique_ptr<WorkerLink> link;  // null: gone
    bool aside = false;
    WorkerLoad load;
    std::uint32_t number = workload::kNone;         // in the router; kNone: not there
    std::vector<std::set<std::uint64_t>> caches{};  // by rank, when they are kept
    bool Available() const { return link != nullptr && !aside; }
  };
  struct Stream {
    std::uint64_t number = 0;  // 0: free
    std::shared_ptr<StreamListener> listener;
    std::uint32_t index = 0;
    std::uint32_t worker = workload::kNone;  // kNone: not placed yet
    std::uint32_t rank = 0;
    std::uint64_t prompt = 0;
    std::uint64_t length = 0;                      // tokens so far, prompt included
    bool computed = false;                         // the prompt is
    std::uint32_t routed = workload::kNone;        // id in the router's table
    std::shared_ptr<const LiveRequest> waiting{};  // queued in the router
  };

  std::uint32_t Choose(const LiveRequest& request);
  bool Busy(const Worker& worker) const;
  Stream* Find(std::uint64_t number);
  void Computed(Stream& stream);
  void OnHeld(Stream& stream);
  void AddTokens(Stream& stream, std::uint64_t tokens);
  void Remove(Stream& stream);
  void Send(Stream& stream, std::uint32_t worker, std::uint32_t rank,
            std::shared_ptr<const LiveRequest> request);
  Result<void> Route(Stream& stream, std::shared_ptr<const LiveRequest> request);
  void Unroute(const Stream& stream);
  void ApplyDecisions();

  RouterMode mode_;
  ChaCha12 random_;
  BusyLimits limits_;
  RemoteHandoffs* handoffs_ = nullptr;
  std::vector<Worker> workers_;
  std::uint32_t next_worker_ = 0;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> free_;
  std::uint64_t uses_ = 0;
  std::uint64_t in_flight_ = 0;
  std::vector<std::shared_ptr<StreamListener>> touched_;

  void MakeRouter();
  void Readmit(Stream& stream);

  // With a router only.
  router::RouterSettings settings_;
  bool keep_caches_ = false;
  std::vector<std::uint32_t> places_;  // of workers, by their number in the router
  std::unique_ptr<router::Router> router_;
  router::PoolShape shape_;
  std::uint64_t kv_stored_ = 0, kv_removed_ = 0;
  std::function<double()> now_ms_;
  RequestTable table_;
  std::vector<std::uint64_t> routed_streams_;  // by place in the table
  std::vector<router::Decision> decisions_;
};

}  // namespace dynosim::live
