// SPDX-License-Identifier: Apache-2.0
// SglangCore: continuous batching over a token pool with a radix cache (chapter 20). A pass is
// either a prefill batch or a decode step of all running requests. All amounts of KV are pages of
// `page_size` tokens.
//
// The running list is ordered. With the calendar on, decode passes do not touch running requests:
// each gains one token a pass (request_state.h), a heap knows who ends when, and a second one whose
// leaf must be built in a given pass. A prefill pass leaves the calendar alone. Anything out of the
// ordinary (retraction, bursts, a pass that cannot get its pages) turns the calendar off first and
// executes the plain algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "engine/core.h"
#include "engine/effects.h"
#include "engine/settings.h"
#include "engine/sglang/page_events.h"
#include "engine/sglang/request_state.h"
#include "engine/speculative.h"
#include "kv/radix_cache.h"
#include "timing/pass_timer.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::engine::sglang {

class SglangCore final : public SchedulerCore, private kv::GrowingLeaves {
 public:
  SglangCore(const EngineSettings& settings, const CoreOptions& options);

  void Submit(const workload::Request& request, const workload::RequestSource& source) override;
  bool HasWork() const override {
    return !running_.empty() || !waiting_.empty() || !prebuilt_.empty() || rounds_left_ > 0;
  }
  bool Drained() const override {
    return running_.empty() && waiting_.empty() && prebuilt_.empty() && handoffs_.empty();
  }
  double RunPass(double now_ms, std::uint64_t pass, bool may_defer, PassEffects& effects) override;
  std::uint64_t SteadyPasses(std::uint64_t pass, std::uint64_t limit) override;
  void SteadyDurationsMs(std::uint64_t pass, std::span<double> out) const override;
  std::uint64_t SteadyRemovalPass(std::uint64_t through) const override;
  void AdvanceSteady(std::uint64_t pass, PassEffects& effects) override;
  void EndWorkerPasses(const WorkerPasses& passes) override;

  bool Cancel(std::uint32_t request) override;
  void ReleaseSource(std::uint32_t request) override;
  void CancelSource(std::uint32_t request) override;
  bool QueueReservation(const workload::Request& request, const workload::RequestSource& source,
                        Rejection& why) override;
  std::optional<Grant> TryReserve() override;
  bool ReservationDue() const override {
    return !pending_.empty() && failed_generation_ != generation_;
  }
  void Activate(std::uint32_t request) override;
  void CancelDestination(std::uint32_t request) override;
  bool ActWhenStuck(PassEffects& effects) override;

  RankMetrics Metrics() const override;
  void AppendHeldGroups(std::vector<std::uint32_t>& groups) const override;
  const ForwardPassMetrics& LastPassMetrics() const override { return metrics_; }
  std::uint64_t OldestLivePass() const override;

  const kv::RadixCache& cache() const { return cache_; }
  double new_token_ratio() const { return ratio_; }
  // Pages that requests own outside the tree; with the tree and the free ones they make the pool.
  std::uint64_t PagesOutsideTree() const;

 private:
  struct Running {
    std::uint32_t slot;
    std::uint64_t end;  // calendar: the decode pass that gives the last token
  };
  struct Due {  // heap entry: something happens to a request in decode pass `pass`
    std::uint64_t pass;
    std::uint64_t order;
    std::uint32_t slot;
  };
  struct Segment {  // decode passes from `decode` on are worker passes from `pass` on
    std::uint64_t decode;
    std::uint64_t pass;
  };
  struct Chunk {  // one request of a prefill batch
    std::uint32_t slot = kNoSlot;
    std::uint64_t start = 0;   // tokens that have KV already
    std::uint64_t tokens = 0;  // tokens to compute
  };
  struct Plan {  // what the waiting head needs to be admitted
    bool possible = false;
    std::uint64_t start = 0;
    std::uint64_t chunk = 0;
    std::uint64_t need = 0;
    std::uint64_t output = 0;  // tokens set aside for its output
  };

  // Waiting queue and prefill batch (admission.cc).
  void Load(RequestState& r, const workload::Request& request,
            const workload::RequestSource& source);
  kv::SequenceBlocks& Names(RequestState& r);
  bool RejectUpFront(const RequestState& r, Rejection& rejection) const;
  void RejectDoomed();
  void PromotePrebuilt(PassEffects& effects);
  void OrderQueue();
  bool OrdersQueue() const;
  bool OrderIsCurrent() const;
  bool AdmissionPaused() const {
    return rounds_left_ > 0 || !prebuilt_.empty() || !pending_.empty() || decode_first_;
  }
  Plan PlanChunk(RequestState& r, std::uint64_t input_budget, std::uint64_t chunk_budget);
  std::uint64_t HeadMatch(RequestState& r);
  double ReservedTokens() const;
  void FormBatch(PassEffects& effects);
  bool Place(RequestState& r, const Plan& plan);
  std::uint64_t RemainingAt(const Running& entry) const;

  // Passes (core.cc).
  double RunPrefill(double now_ms, PassEffects& effects);
  double PrefillMs() const;
  void GiveFirstTokens(PassEffects& effects);
  double RunDecode(double now_ms, PassEffects& effects);
  double DecodePlainly(double now_ms, PassEffects& effects);
  void EmitPlainly(PassEffects& effects);
  std::uint64_t GrowthOf(const RequestState& r) const;
  void RetractFor(std::uint64_t growth, PassEffects& effects);
  void GiveBack(RequestState& r);
  void CacheRunning(RequestState& r, kv::Stamp stamp);
  void Release(RequestState& r);
  void Finish(std::uint32_t slot, PassEffects& effects);
  void AddToken(RequestState& r, std::uint64_t burst);
  void TakePages(std::uint64_t pages);
  void DecayRatio(std::uint64_t passes);
  bool SettlePass(double now_ms, double end_ms, double ratio_before, PassEffects& effects);

  // Calendar (calendar.cc).
  void CatchUp(std::uint32_t owner) override;
  bool FitsCalendar(const RequestState& r) const;
  void TurnCalendarOn();
  void TurnCalendarOff();
  void AddToCalendar(Running& entry);
  void RemoveFromCalendar(RequestState& r);
  void AdvanceTokens(std::uint64_t passes, std::uint64_t first_pass);
  void GrowThrough(std::uint64_t decode, std::uint64_t begin, std::uint64_t first_pass);
  void AwaitPage(std::uint32_t slot);
  void SettleTree(RequestState& r, std::uint64_t decode);
  void SettleTrack(RequestState& r, std::uint64_t decode);
  void FinishDue(PassEffects& effects);
  void NoteDecodePass(std::uint64_t decode, std::uint64_t pass);
  void PruneSegments();
  std::uint64_t FirstPassOf(const RequestState& r) const;
  std::uint64_t PassesThatFit(std::uint64_t limit, std::uint64_t pages) const;
  std::uint64_t GrowthPages(std::uint64_t passes) const;
  std::uint64_t PassesWithoutAdmission(std::uint64_t limit);
  std::uint64_t PassesWithBlockedHead(std::uint64_t limit, const Plan& plan) const;

  // Requests that cannot proceed, cancellation (handoff.cc).
  void Unstick();
  void RejectAt(std::size_t position, const Rejection& reason);
  void SignalRejections(PassEffects& effects);
  void Hold(std::uint32_t slot, PassEffects& effects);
  void Drop(std::uint32_t slot);
  void DropHandoff(std::uint32_t request);
  std::uint32_t SlotOf(std::uint32_t request) const;
  void Forget(const RequestState& r);

  void FillMetrics();
  void FillQueueMetrics();

  std::uint32_t NewSlot();
  void JoinRunning(std::uint32_t slot);
  std::size_t PositionOf(std::uint32_t slot) const;
  kv::Stamp NextStamp() { return {.major = 2 * decode_ + 1, .minor = next_stamp_++}; }
  kv::Stamp DecodeStamp(std::uint64_t decode, const RequestState& r) const {
    return {.major = 2 * decode, .minor = r.order};
  }
  std::uint64_t PagesFor(std::uint64_t tokens) const {
    return tokens / page_size_ + (tokens % page_size_ != 0 ? 1 : 0);
  }
  std::uint64_t WholePages(std::uint64_t tokens) const { return tokens / page_size_; }

  static constexpr std::size_t kFirstPrune = 4096;

  // Settings.
  const std::uint64_t page_size_;
  const std::uint64_t max_num_seqs_;
  const std::uint64_t max_model_len_;  // kUnlimited when not set
  const std::uint64_t max_prefill_tokens_;
  const std::uint64_t chunk_tokens_;
  const std::uint64_t clip_tokens_;
  const std::uint64_t interval_;
  const bool prefix_caching_;
  const bool longest_prefix_first_;
  const std::uint64_t speculative_tokens_;
  const double initial_ratio_, lowest_ratio_, ratio_step_;
  const WorkerRole role_;
  const CoreOptions options_;
  const bool calendar_allowed_;
  timing::PassTimer timer_;

  kv::RadixCache cache_;
  PageEvents events_;
  std::vector<RequestState> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::deque<std::uint32_t> waiting_;
  std::vector<Running> running_;
  std::deque<std::uint32_t> prebuilt_;              // activated, to join the running ones
  std::deque<std::uint32_t> pending_;               // reservations in order of acceptance
  FlatMap<std::uint32_t, std::uint32_t> handoffs_;  // request id -> slot; prefill and decode ranks
  std::uint64_t held_count_ = 0, reserved_count_ = 0;
  std::uint64_t doomed_count_ = 0;  // waiting requests that will be rejected
  double ratio_;                    // new_token_ratio
  std::uint64_t rounds_left_ = 0;
  std::uint64_t next_order_ = 1;
  std::uint64_t next_stamp_ = 0;
  std::uint64_t generation_ = 0;                  // bumped whenever capacity is freed
  std::uint64_t failed_generation_ = kUnlimited;  // of the last failed attempt for the pending head
  // A waiting request gave its pages back so that the running one can grow: it does so before
  // anybody is admitted. Otherwise the pages could go back and forth for ever.
  bool decode_first_ = false;
  std::uint64_t retractions_ = 0;
  std::uint64_t hit_tokens_ = 0, computed_tokens_ = 0;

  // Calendar.
  bool calendar_ = false;
  std::uint64_t decode_ = 0;  // decode passes so far
  std::int64_t base_sum_ = 0;
  std::vector<std::uint32_t> growers_;  // by decode pass modulo page size: who takes a page then
  std::vector<Due> ends_;               // min-heaps
  std::vector<Due> page_ends_;          // pages to insert in their own pass
  std::vector<Segment> segments_;
  std::uint64_t segments_dropped_ = 0;
  std::size_t prune_at_;

  // Answers that stay valid for a while.
  struct HeadMatchMemo {
    std::uint32_t slot = kNoSlot;
    std::uint64_t version = 0;
    std::uint64_t length = 0;
    kv::RadixCache::Match match;
  };
  HeadMatchMemo head_;
  bool order_changed_ = false;  // the queue has changed since it was ordered
  std::uint64_t ordered_version_ = 0, ordered_evictions_ = 0;

  // The pass in progress.
  std::uint64_t pass_ = 0;
  PassEffects* effects_ = nullptr;
  bool counting_ = false;  // rounds_left was positive at the start
  bool ran_ = false;       // there was a batch, or something to decode
  bool effect_ = false;
  bool stuck_ = false;
  std::vector<Chunk> batch_;
  std::vector<std::uint32_t> tokenless_;  // activated requests without output
  std::vector<std::uint32_t> first_;      // prompt done, growing
  std::vector<std::uint32_t> ended_;
  std::vector<std::uint32_t> batch_ids_;  // requests of the batch, in its order
  std::vector<std::uint32_t> retracted_;
  std::optional<double> new_ratio_;  // estimate after a retraction
  std::vector<std::pair<std::uint32_t, Rejection>> rejected_;
  struct Scored {
    std::uint32_t slot;
    bool demoted;
    std::uint64_t match;
  };
  std::vector<Scored> scored_;
  FlatMap<kv::BlockName, std::uint32_t> short_prefixes_;
  std::unique_ptr<BurstSampler> sampler_;
  ForwardPassMetrics metrics_;
};

}  // namespace dynosim::engine::sglang
