// SPDX-License-Identifier: Apache-2.0
// Router: decides which rank of one pool serves a request. One router serves one pool; the run
// tells it what it may know (placements, ends of prefills and requests, KV events) and when.
//
// A request is either decided at once or queued; queued ones are decided inside a later call.
// Decisions are appended in the order in which they are made. Times are virtual milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/events.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::router {

struct Target {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  friend bool operator==(const Target&, const Target&) = default;
};

// The pool that a router serves. Targets are numbered worker * ranks + rank.
struct PoolShape {
  std::uint32_t workers = 1;
  std::uint32_t ranks = 1;
  std::uint64_t block_size = 64;
  std::uint64_t max_batched_tokens = 8192;
  std::uint64_t pool_blocks = 0;  // KV blocks of a target; 0: unknown
  // Bits of a request id that are small and differ between requests at the same time: what a router
  // keeps by request is a list of this length.
  std::uint32_t id_mask = 0xFFFFFFFF;

  std::uint32_t targets() const { return workers * ranks; }
  Target TargetOf(std::uint32_t number) const { return {number / ranks, number % ranks}; }
  std::uint32_t NumberOf(Target target) const { return target.worker * ranks + target.rank; }
};

// One target as a decision saw it. `cost` is what the policy compares; the other terms are zero
// where a policy does not use them.
struct Candidate {
  Target target{};
  std::uint64_t overlap_blocks = 0;
  std::uint64_t active_prefill_tokens = 0;
  std::uint64_t active_blocks = 0;
  std::uint64_t additional_blocks = 0;
  std::uint64_t active_requests = 0;
  double overlap_credit = 0.0;
  double prefill_cost = 0.0;
  double decode_cost = 0.0;
  double request_cost = 0.0;
  double cost = 0.0;
};

// Overlap of the prompt with caches, in blocks; only policies that look at caches have it.
struct OverlapReport {
  std::uint64_t selected = 0;
  std::uint64_t best_available = 0;
};

struct Decision {
  workload::Request request{};
  Target target{};
  std::optional<double> queued_at_ms{};  // when it entered the queue
  std::optional<OverlapReport> overlap{};
  bool possible = true;                 // false: forced, and not a choice the policy could make
  std::vector<Candidate> candidates{};  // empty unless captured
};

struct Arrival {
  const workload::Request& request;
  const workload::RequestSource& source;
  std::optional<Target> forced{};  // the target of an earlier run
};

class Router {
 public:
  Router() = default;
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  virtual ~Router() = default;

  // Decides or queues a request. An error ends the run.
  virtual Result<void> Place(const Arrival& arrival, double now_ms, std::vector<Decision>& out) = 0;

  // The first token of a placed request is out, and it was not its last.
  virtual void PrefillDone(std::uint32_t request, double now_ms, std::vector<Decision>& out);
  // A placed request has left its target.
  virtual void Terminal(std::uint32_t request, double now_ms, std::vector<Decision>& out);
  // Takes a request out of the queue; false if it is not there.
  virtual bool CancelPending(std::uint32_t request);
  // Appends the groups of all block names that the router remembers of requests that have left, and
  // that did not come to it as KV events. In any order, with repetitions.
  virtual void AppendHeldGroups(std::vector<std::uint32_t>& /*groups*/) const {}
  // Requests in the queue.
  virtual std::uint64_t Pending() const { return 0; }

  // KV events of one target, in order. Only for routers that want them.
  virtual bool WantsEvents() const { return false; }
  virtual void OnStored(std::uint32_t target, std::span<const kv::BlockName> blocks);
  virtual void OnRemoved(std::uint32_t target, std::span<const kv::BlockName> blocks);
};

}  // namespace dynosim::router
