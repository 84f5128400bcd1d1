// SPDX-License-Identifier: Apache-2.0
// KvRouter: sends a request to the target with the least cost, in blocks: prompt tokens that it
// would have to wait for and compute, less what its cache holds, plus the blocks in use there
// (chapter 70). Requests wait in classes while all targets are busy with prompts.
//
// Overlaps are looked up once, at arrival; loads are those of the decision. Ties and sampling draw
// from one seeded stream, candidates in the order of targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "base/random.h"
#include "base/result.h"
#include "kv/events.h"
#include "router/approximate_cache.h"
#include "router/config.h"
#include "router/load_tracker.h"
#include "router/policy_profile.h"
#include "router/policy_queue.h"
#include "router/presence_index.h"
#include "router/router.h"
#include "workload/request.h"

namespace dynosim::router {

// How a router knows what caches hold.
enum class CacheSource : std::uint8_t {
  kNone,    // it does not, and overlaps are 0
  kEvents,  // KV events
  kTtl,     // by its own placements, until they are old
  kLru,     // by its own placements, in a cache of the target's size
};

struct KvRouterOptions {
  KvRouterConfig config{};
  std::optional<PolicyProfile> profile{};  // none: one class from the configuration
  std::uint64_t seed = 42;
  bool capture_candidates = false;
  CacheSource caches = CacheSource::kEvents;
  TtlRule ttl{};               // kTtl
  std::size_t lru_blocks = 0;  // kLru: blocks of a target
  // kEvents: placements count as cached for this long, before and beside what events say.
  std::optional<double> predicted_ttl_ms{};
  PrefillNanos prefill_ns{};  // none: prompt tokens count in full until they are computed
};

class KvRouter final : public Router {
 public:
  KvRouter(const PoolShape& shape, const KvRouterOptions& options);

  Result<void> Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) override;
  void PrefillDone(std::uint32_t request, double now_ms, std::vector<Decision>& out) override;
  void Terminal(std::uint32_t request, double now_ms, std::vector<Decision>& out) override;
  bool CancelPending(std::uint32_t request) override;
  std::uint64_t Pending() const override { return queue_.size(); }
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const override;

  bool WantsEvents() const override { return caches_ == CacheSource::kEvents; }
  void OnStored(std::uint32_t target, std::span<const kv::BlockName> blocks) override;
  void OnRemoved(std::uint32_t target, std::span<const kv::BlockName> blocks) override;

 private:
  // A request between its arrival and its decision.
  struct Waiting {
    workload::Request request;
    TrackedRequest tracked;
    std::vector<PrefixMatch> overlaps;
    std::uint32_t best_overlap = 0;
    std::optional<Target> forced;
    std::optional<double> queued_at_ms;
  };

  Waiting Take(const Arrival& arrival, double now_ms);
  void AddPredicted(Waiting& waiting, double now_ms);
  Decision Admit(Waiting& waiting, double now_ms);
  // Costs of all targets, into costs_; terms as well when they are captured.
  void Evaluate(const Waiting& waiting, double now_ms, std::vector<Candidate>& terms);
  std::uint32_t Choose();
  std::uint32_t Sample();
  bool IsPossible(std::uint32_t target) const;
  bool AllBusy(std::size_t number, double now_ms) const;
  void Drain(double now_ms, std::vector<Decision>& out);
  TrackedRequest& placed(std::uint32_t request);

  PoolShape shape_;
  KvRouterConfig config_;
  PolicyProfile profile_;
  bool capture_candidates_;
  CacheSource caches_;
  ChaCha12 random_;
  PresenceIndex index_;
  TtlCache ttl_;
  LruCache lru_;
  PresenceIndex predicted_index_;
  TtlCache predicted_;
  bool predicts_;
  LoadTracker load_;
  PrefillNanos prefill_ns_;
  PolicyQueue queue_;
  FlatMap<std::uint32_t, TrackedRequest> placed_;          // requests on a target
  FlatMap<std::uint32_t, Waiting> waiting_;                // queued requests
  std::vector<std::vector<workload::BlockExtent>> spare_;  // buffers of requests that have left
  // Of the decision at hand, by target.
  std::vector<std::uint32_t> overlap_, tracked_;
  std::vector<PrefixMatch> matches_;
  std::vector<double> costs_;
  std::vector<std::uint32_t> least_;  // targets of minimum cost
};

}  // namespace dynosim::router
