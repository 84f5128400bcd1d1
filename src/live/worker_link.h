// SPDX-License-Identifier: Apache-2.0
// WorkerLink: one worker as the frontend reaches it, in this process or in another one. Events of
// its streams come back through the dispatcher.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/handoff_coordinator.h"
#include "live/live_request.h"

namespace dynosim::live {

// What the frontend knows of a worker.
struct WorkerCard {
  std::string id;  // unique among the workers
  // A process with both pools serves whole requests and counts as aggregated.
  engine::WorkerRole role = engine::WorkerRole::kAggregated;
  engine::Backend backend = engine::Backend::kVllm;
  engine::TransferTerms transfer{};  // of a prefill worker
  std::uint32_t ranks = 1;
  std::uint64_t block_size = 64;
  std::uint64_t total_blocks = 0;   // per rank
  std::uint64_t max_model_len = 0;  // 0: no limit
  std::uint64_t max_num_seqs = 0;
  std::uint64_t max_num_batched_tokens = 0;
  // First ports of its KV events and of their replay, rank r adds r; 0: none.
  std::uint16_t kv_events_port = 0, kv_replay_port = 0;
  // Workers behind the link, which share what it gets: the limits of one are for each of them.
  std::uint32_t members = 1;
};

class WorkerLink {
 public:
  WorkerLink() = default;
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;
  virtual ~WorkerLink() = default;

  virtual const WorkerCard& card() const = 0;
  // `rank` may be workload::kNone: the worker chooses.
  virtual void Submit(std::uint32_t rank, std::uint64_t stream,
                      std::shared_ptr<const LiveRequest> request) = 0;
  virtual void Cancel(std::uint64_t stream) = 0;
  // The other half of a handoff is ready. A prefill worker lets go of what it holds; a decode
  // worker that has reserved blocks (kReserved) begins the transfer.
  virtual void Proceed(std::uint64_t stream, const engine::TransferTerms& terms) = 0;
};

// A worker of an engine host in this process.
class LocalLink final : public WorkerLink {
 public:
  LocalLink(EngineHost& host, std::uint32_t worker, WorkerCard card)
      : host_(host), worker_(worker), card_(std::move(card)) {}

  const WorkerCard& card() const override { return card_; }
  void Submit(std::uint32_t rank, std::uint64_t stream,
              std::shared_ptr<const LiveRequest> request) override {
    host_.Submit(worker_, rank, stream, std::move(request));
  }
  void Cancel(std::uint64_t stream) override { host_.Cancel(worker_, stream); }
  void Proceed(std::uint64_t stream, const engine::TransferTerms& terms) override {
    host_.Proceed(worker_, stream, terms);
  }

 private:
  EngineHost& host_;
  std::uint32_t worker_;
  WorkerCard card_;
};

WorkerCard MakeCard(const engine::EngineSettings& settings, std::string id);
// Of two pools that serve requests together: sizes are those of the decode workers, and the limits
// those of both.
WorkerCard MakeCard(const HandoffOptions& pools, std::string id);

}  // namespace dynosim::live
