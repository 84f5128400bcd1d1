// SPDX-License-Identifier: Apache-2.0
// VllmCore: continuous batching with paged KV blocks (chapter 10). TensorRT-LLM's
// guaranteed-no-evict policy is the same core with another admission rule and no preemption
// (section 7).
//
// The running list is ordered by admission. Its front part may be steady (request_state.h): such
// requests are not touched in a pass unless a block or their end is due; two calendars know when
// (due lists per pass number modulo the block size, a heap of last passes). The rest is explicit
// and handled one by one. Any pass can be executed with everything explicit, which is the plain
// algorithm.
#pragma once

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
#include "engine/speculative.h"
#include "engine/vllm/request_state.h"
#include "kv/block_pool.h"
#include "timing/pass_timer.h"
#include "workload/source.h"

namespace dynosim::engine::vllm {

class VllmCore final : public SchedulerCore {
 public:
  VllmCore(const EngineSettings& settings, const CoreOptions& options);

  void Submit(const workload::Request& request, const workload::RequestSource& source) override;
  bool HasWork() const override { return running_count_ > 0 || !waiting_.empty(); }
  bool Drained() const override { return !HasWork() && handoffs_.empty(); }
  double RunPass(double now_ms, std::uint64_t pass, bool may_defer, PassEffects& effects) override;
  std::uint64_t SteadyPasses(std::uint64_t pass, std::uint64_t limit) override;
  void SteadyDurationsMs(std::uint64_t pass, std::span<double> out) const override;
  std::uint64_t SteadyRemovalPass(std::uint64_t through) const override;
  void AdvanceSteady(std::uint64_t pass, PassEffects& effects) override;
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
  const kv::BlockPool& pool() const { return pool_; }

 private:
  struct Cost {
    std::uint64_t cached = 0;
    std::uint64_t active_cached = 0;
    std::uint64_t new_tokens = 0;
  };
  enum class Decision : std::uint8_t { kAdmit, kWait, kReject };
  enum class Scheduled : std::uint8_t { kScheduled, kBlocked, kSelfPreempted };
  struct LastPass {  // heap entry: pass in which a steady request gets its last token
    std::uint64_t pass;
    std::uint64_t order;
    std::uint32_t slot;
  };

  // Admission (admission.cc).
  Decision Admit(RequestState& r, Cost& cost, Rejection& rejection);
  bool RejectUpFront(const RequestState& r, Rejection& rejection) const;
  Cost LookUp(RequestState& r, bool keep_last_block);
  std::uint64_t BlocksToFinish(const RequestState& r, std::uint64_t active_cached) const;

  // One pass (core.cc).
  void NotePreemptions();
  void ScheduleRunning();
  void ScheduleWaiting(PassEffects& effects);
  Scheduled Schedule(std::uint32_t slot, const Cost* cost);
  bool GrowOrPreempt(std::uint32_t slot, std::uint64_t& after, std::uint64_t before,
                     std::uint64_t reuse_blocks, bool& self);
  std::uint32_t PreemptOne();
  void UndoScheduled(RequestState& r);
  void PublishFull(RequestState& r, std::uint64_t before, std::uint64_t after);
  double Emit(double now_ms, PassEffects& effects);
  void EmitTokens(PassEffects& effects);
  void GiveToken(RequestState& r, std::uint64_t burst);
  void SignalEmission(std::uint32_t slot, bool first, PassEffects& effects);
  void Finish(std::uint32_t slot, PassEffects& effects);
  void RejectHead(const Rejection& reason);
  void SignalRejections(PassEffects& effects);
  void Unstick();
  bool AnyPrebuilt() const;
  void FillMetrics();
  void FillQueueMetrics();

  // Speculative emission (speculative_emission.cc).
  bool ReserveBursts();
  void EmitBursts(PassEffects& effects);

  // Steady requests (steady.cc).
  bool SteadyFits(std::uint64_t pass) const;
  void ApplySteadyBlocks(std::uint64_t through);
  void ApplyDue(std::uint32_t slot, std::uint64_t pass);
  void FinishSteady(std::uint64_t pass, PassEffects& effects);
  void PromoteSteady();
  void Demote(std::uint64_t pass, bool in_pass);
  void DropStaleEnds();
  void DueInsert(std::uint32_t slot);
  void DueRemove(std::uint32_t slot);
  std::uint64_t DueKey(const RequestState& r) const;

  // Handoff (handoff.cc).
  void Load(RequestState& r, const workload::Request& request,
            const workload::RequestSource& source);
  void Hold(std::uint32_t slot, PassEffects& effects);
  void Drop(std::uint32_t slot);
  std::uint32_t SlotOf(std::uint32_t request) const;
  void Forget(std::uint32_t request) { handoffs_.Erase(request); }
  void QueueActivated(std::uint32_t slot);
  std::uint32_t FirstActivated() const;
  std::uint32_t Candidate() const;

  // Lists.
  std::uint32_t NewSlot();
  void RunningAppend(std::uint32_t slot);
  void RunningRemove(std::uint32_t slot);
  void WaitingRemove(std::uint32_t slot);

  std::uint64_t BlocksFor(std::uint64_t tokens) const {
    return tokens / block_size_ + (tokens % block_size_ != 0 ? 1 : 0);
  }

  // Settings.
  const bool reserve_to_completion_;  // TensorRT-LLM
  const std::uint64_t block_size_;
  const std::uint64_t max_batched_tokens_;
  const std::uint64_t max_num_seqs_;
  const std::uint64_t max_model_len_;  // kUnlimited when not set
  const bool prefix_caching_;
  const bool chunked_prefill_;
  const bool fifo_preemption_;
  const std::uint64_t speculative_tokens_;
  const std::uint64_t defer_interval_;
  const WorkerRole role_;
  const CoreOptions options_;
  const bool calendar_allowed_;
  timing::PassTimer timer_;

  kv::BlockPool pool_;
  std::vector<RequestState> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::deque<std::uint32_t> waiting_;
  std::uint32_t running_head_ = kNoSlot, running_tail_ = kNoSlot;
  std::uint64_t running_count_ = 0;
  std::uint64_t next_order_ = 0;
  std::uint64_t preemptions_ = 0;
  std::uint64_t fruitless_passes_ = 0;  // with preemptions, since the last token
  bool one_at_a_time_ = false;
  bool capacity_bound_ = false;
  // TensorRT-LLM: blocks that the running requests need to finish, minus those they have.
  std::uint64_t running_full_blocks_ = 0;
  std::uint64_t running_blocks_ = 0;

  // Handoff: slot by request id while a handoff refers to the request.
  FlatMap<std::uint32_t, std::uint32_t> handoffs_;
  std::deque<std::uint32_t> pending_;  // reservations in order of acceptance
  std::uint64_t next_accepted_ = 0;
  std::uint64_t held_count_ = 0;
  std::uint64_t reserved_count_ = 0;
  std::uint64_t generation_ = 0;                  // grows when capacity comes free
  std::uint64_t failed_generation_ = kUnlimited;  // of the last failed attempt for the head
  bool stuck_ = false;                            // the last pass took no time and had no effect

  // Steady calendar.
  std::uint64_t steady_count_ = 0;
  std::int64_t steady_base_sum_ = 0;
  std::uint64_t applied_pass_ = 0;          // block events are done up to this pass
  std::uint32_t first_explicit_ = kNoSlot;  // first running request that is not steady
  std::vector<std::uint32_t> due_heads_;    // key: (1 - base) mod block size
  std::vector<std::uint32_t> due_counts_;
  std::vector<LastPass> ends_;  // min-heap on (pass, order)
  bool head_blocked_ = false;   // the waiting head cannot be admitted until something is released
  bool shares_generated_ = false;

  // The pass in progress.
  std::uint64_t pass_ = 0;
  std::uint64_t budget_ = 0;
  std::uint64_t batch_count_ = 0, batch_total_ = 0, batch_prefix_ = 0;
  std::uint64_t committed_ = 0;
  bool preempted_any_ = false;
  bool defer_ = false;
  bool effect_ = false;
  bool pure_steady_ = false;  // nothing explicit was scheduled in this pass
  PassEffects* effects_ = nullptr;
  std::vector<std::uint32_t> order_list_;  // explicit running requests, phase A
  std::vector<std::uint32_t> ready_;
  std::vector<std::pair<std::uint32_t, Rejection>> rejected_;  // request id and reason
  std::vector<std::uint32_t> due_scratch_;
  std::uint64_t burst_reserved_ = 0;  // unnamed blocks set aside for this pass's bursts
  std::unique_ptr<BurstSampler> sampler_;
  ForwardPassMetrics metrics_;
};

}  // namespace dynosim::engine::vllm
