// SPDX-License-Identifier: Apache-2.0
#include "live/dispatcher.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/live_request.h"
#include "live/remote_handoffs.h"
#include "live/router_setup.h"
#include "live/worker_link.h"
#include "router/config.h"
#include "router/registry.h"
#include "router/router.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

constexpr const char* kNobody = "no worker is there";

router::PoolRole PoolRoleOf(engine::WorkerRole role) {
  switch (role) {
    case engine::WorkerRole::kPrefill:
      return router::PoolRole::kPrefill;
    case engine::WorkerRole::kDecode:
      return router::PoolRole::kDecode;
    case engine::WorkerRole::kAggregated:
      break;
  }
  return router::PoolRole::kAggregated;
}

}  // namespace

std::uint32_t Dispatcher::AddWorker(std::unique_ptr<WorkerLink> link) {
  const auto gone =
      std::ranges::find_if(workers_, [](const Worker& worker) { return worker.link == nullptr; });
  const auto place = static_cast<std::uint32_t>(gone - workers_.begin());
  if (gone == workers_.end()) {
    workers_.emplace_back();
  }
  workers_[place] = {.link = std::move(link), .aside = false, .load = {}};
  workers_[place].caches.resize(workers_[place].link->card().ranks);
  MakeRouter();
  return place;
}

void Dispatcher::RemoveWorker(std::uint32_t place) {
  std::vector<StreamEvent> lost;
  for (const Stream& stream : streams_) {
    if (stream.number != 0 && stream.worker == place) {
      lost.push_back({.kind = StreamEvent::Kind::kLost,
                      .stream = stream.number,
                      .text = "Service temporarily unavailable"});
    }
  }
  workers_[place].aside = true;
  MakeRouter();
  OnBatch(lost);
  workers_[place] = {};
}

void Dispatcher::SetAside(std::uint32_t place, bool aside) {
  if (std::exchange(workers_[place].aside, aside) != aside) {
    MakeRouter();
  }
}

engine::WorkerRole Dispatcher::role() const {
  const WorkerCard* card = AnyCard();
  return card == nullptr ? engine::WorkerRole::kAggregated : card->role;
}

bool Dispatcher::ready() const {
  const bool prompts = handoffs_ == nullptr || role() != engine::WorkerRole::kDecode ||
                       handoffs_->prefill().available() > 0;
  return available() > 0 && prompts;
}

void Dispatcher::set_limits(const BusyLimits& limits) {
  limits_ = limits;
  if (handoffs_ != nullptr) {
    BusyLimits of_prompts = limits;
    of_prompts.active_decode_blocks.reset();
    handoffs_->prefill().set_limits(of_prompts);
  }
}

std::size_t Dispatcher::available() const {
  return static_cast<std::size_t>(std::ranges::count_if(workers_, &Worker::Available));
}

std::size_t Dispatcher::size() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const Worker& worker) { return worker.link != nullptr; }));
}

const WorkerCard* Dispatcher::AnyCard() const {
  const auto found =
      std::ranges::find_if(workers_, [](const Worker& worker) { return worker.link != nullptr; });
  return found == workers_.end() ? nullptr : &found->link->card();
}

void Dispatcher::ForEach(const std::function<void(const WorkerCard&)>& f) const {
  for (const Worker& worker : workers_) {
    if (worker.link != nullptr) {
      f(worker.link->card());
    }
  }
  if (handoffs_ != nullptr) {
    handoffs_->prefill().ForEach(f);
  }
}

bool Dispatcher::Busy(const Worker& worker) const {
  const WorkerCard& card = worker.link->card();
  const auto over = [](const auto& limit, double value) {
    return limit && value > static_cast<double>(*limit);
  };
  const auto blocks = static_cast<double>(worker.load.blocks);
  const double all_blocks = static_cast<double>(card.total_blocks) * card.ranks * card.members;
  const auto prefill = static_cast<double>(worker.load.prefill_tokens) / card.members;
  return over(limits_.active_decode_blocks, blocks / all_blocks) ||
         over(limits_.active_prefill_tokens, prefill) ||
         over(limits_.active_prefill_tokens_frac,
              prefill / static_cast<double>(card.max_num_batched_tokens)) ||
         (limits_.requests && worker.load.requests >= *limits_.requests * card.members);
}

bool Dispatcher::AllBusy() const {
  if (handoffs_ != nullptr && role() == engine::WorkerRole::kDecode &&
      handoffs_->prefill().AllBusy()) {
    return true;
  }
  return std::ranges::all_of(
      workers_, [&](const Worker& worker) { return !worker.Available() || Busy(worker); });
}

// Busy workers are left out while others are free. There is at least one available worker.
std::uint32_t Dispatcher::Choose(const LiveRequest& request) {
  const auto count = static_cast<std::uint32_t>(workers_.size());
  if (request.worker < count && workers_[request.worker].Available() &&
      role() != engine::WorkerRole::kPrefill) {
    return request.worker;
  }
  std::uint32_t first = next_worker_ % count;
  if (mode_ == RouterMode::kRandom) {
    first = random_.NextBelow(count);
  }
  std::optional<std::uint32_t> chosen;
  std::optional<std::uint32_t> busy;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (first + i) % count;
    const Worker& worker = workers_[place];
    if (!worker.Available()) {
      continue;
    }
    if (Busy(worker)) {
      busy = busy.value_or(place);
    } else if (!chosen || (mode_ == RouterMode::kLeastLoaded &&
                           worker.load.requests < workers_[*chosen].load.requests)) {
      chosen = place;
    }
  }
  const std::uint32_t place = chosen.value_or(busy.value_or(first));
  next_worker_ = place + 1;
  return place;
}

void Dispatcher::UsePolicy(const router::RouterSettings& settings, bool keep_caches,
                           std::function<double()> now_ms) {
  settings_ = settings;
  keep_caches_ = keep_caches;
  now_ms_ = std::move(now_ms);
  MakeRouter();
}

// A router over the workers that are there, with what the last one knew: caches, and requests in
// flight or in its queue.
void Dispatcher::MakeRouter() {
  if (now_ms_ == nullptr) {
    return;  // no policy
  }
  places_.clear();
  for (Worker& worker : workers_) {
    worker.number = workload::kNone;
  }
  for (std::uint32_t place = 0; place < workers_.size(); ++place) {
    if (workers_[place].Available()) {
      workers_[place].number = static_cast<std::uint32_t>(places_.size());
      places_.push_back(place);
    }
  }
  router_ = nullptr;
  if (!places_.empty()) {
    const WorkerCard& card = workers_[places_.front()].link->card();
    shape_ = ShapeOf(card, static_cast<std::uint32_t>(places_.size()));
    shape_.id_mask = RequestTable::kPlaceMask;
    router_ = router::MakeRouter(settings_, shape_, PoolRoleOf(card.role));
    for (const std::uint32_t place : places_) {
      for (std::uint32_t rank = 0; rank < shape_.ranks && router_->WantsEvents(); ++rank) {
        const auto& cache = workers_[place].caches[rank];
        const std::vector<std::uint64_t> blocks(cache.begin(), cache.end());
        router_->OnStored(shape_.NumberOf({workers_[place].number, rank}), blocks);
      }
    }
  }
  for (Stream& stream : streams_) {
    if (stream.number != 0 && stream.routed != workload::kNone) {
      Readmit(stream);
    }
  }
  ApplyDecisions();
}

// Tells a new router of a request that the last one had. One whose worker has gone, or that does
// not fit into the limits of the new one, counts nowhere.
void Dispatcher::Readmit(Stream& stream) {
  const LiveRequest* live = table_.Find(stream.routed);
  const std::uint32_t worker =
      stream.worker == workload::kNone ? workload::kNone : workers_[stream.worker].number;
  if (router_ == nullptr || live == nullptr) {
    return;
  }
  const workload::Request request = {.id = stream.routed,
                                     .arrival_ms = now_ms_(),
                                     .prompt_tokens = live->prompt.size(),
                                     .output_tokens = live->output_tokens,
                                     .priority = live->priority};
  if (stream.worker == workload::kNone) {
    (void)router_->Place({.request = request, .source = table_, .forced = {}}, now_ms_(),
                         decisions_);
    return;
  }
  const std::size_t before = decisions_.size();
  bool counts = worker != workload::kNone;
  if (counts) {
    const router::Target target = {worker, stream.rank % shape_.ranks};
    counts =
        router_
            ->Place({.request = request, .source = table_, .forced = target}, now_ms_(), decisions_)
            .has_value();
    if (counts && decisions_.size() == before) {
      router_->CancelPending(request.id);
      counts = false;
    }
    decisions_.resize(before);
  }
  if (!counts) {
    table_.Remove(std::exchange(stream.routed, workload::kNone));
  } else if (stream.computed && role() != engine::WorkerRole::kDecode) {
    router_->PrefillDone(request.id, now_ms_(), decisions_);
  }
}

void Dispatcher::OnKvChanges(const std::vector<KvChange>& changes) {
  for (const KvChange& change : changes) {
    Worker& worker = workers_[change.worker];
    if (change.rank >= worker.caches.size()) {
      continue;
    }
    const std::vector<std::uint64_t>* blocks = &change.blocks;
    std::vector<std::uint64_t> fresh;
    if (keep_caches_) {
      // Only what is new counts: events of another process may come twice.
      std::set<std::uint64_t>& cache = worker.caches[change.rank];
      for (const std::uint64_t block : change.blocks) {
        if (change.stored ? cache.insert(block).second : cache.erase(block) != 0) {
          fresh.push_back(block);
        }
      }
      blocks = &fresh;
    }
    if (worker.number == workload::kNone || !WantsKvEvents()) {
      continue;
    }
    const std::uint32_t target = shape_.NumberOf({worker.number, change.rank});
    ++(change.stored ? kv_stored_ : kv_removed_);
    if (change.stored) {
      router_->OnStored(target, *blocks);
    } else {
      router_->OnRemoved(target, *blocks);
    }
  }
}

Result<std::uint64_t> Dispatcher::Submit(std::shared_ptr<const LiveRequest> request,
                                         std::shared_ptr<StreamListener> listener,
                                         std::uint32_t index) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(streams_.size()));
    streams_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Stream& stream = streams_[place];
  stream = {.number = (++uses_ << 32U) | place,
            .listener = std::move(listener),
            .index = index,
            .prompt = request->prompt.size(),
            .length = request->prompt.size()};
  const std::uint64_t number = stream.number;
  ++in_flight_;
  const bool handed_over = handoffs_ != nullptr && role() == engine::WorkerRole::kDecode;
  auto placed = handed_over ? handoffs_->Begin(number, std::move(request))
                            : Place(number, std::move(request));
  if (!placed) {
    Cancel(number);
    return std::unexpected(std::move(placed).error());
  }
  return number;
}

Result<void> Dispatcher::Place(std::uint64_t number, std::shared_ptr<const LiveRequest> request) {
  Stream& stream = *Find(number);
  if (now_ms_ != nullptr) {
    return Route(stream, std::move(request));
  }
  if (available() == 0) {
    return FailedError("", kNobody);
  }
  const std::uint32_t chosen = Choose(*request);
  const bool wanted = request->dp_rank < workers_[chosen].link->card().ranks &&
                      role() != engine::WorkerRole::kPrefill;
  const std::uint32_t rank = wanted ? request->dp_rank : workload::kNone;
  Send(stream, chosen, rank, std::move(request));
  return {};
}

const WorkerCard* Dispatcher::CardOf(std::uint64_t number) {
  const Stream* stream = Find(number);
  return stream == nullptr || stream->worker == workload::kNone
             ? nullptr
             : &workers_[stream->worker].link->card();
}

bool Dispatcher::Proceed(std::uint64_t number, const engine::TransferTerms& terms) {
  const Stream* stream = Find(number);
  if (stream == nullptr || stream->worker == workload::kNone) {
    return false;
  }
  workers_[stream->worker].link->Proceed(number, terms);
  return true;
}

void Dispatcher::Abort(std::uint64_t number, const StreamEvent& event) {
  if (const Stream* stream = Find(number)) {
    if (stream->worker != workload::kNone) {
      workers_[stream->worker].link->Cancel(number);
    }
    StreamEvent own = event;
    own.stream = number;
    OnBatch({own});
  }
}

void Dispatcher::Send(Stream& stream, std::uint32_t place, std::uint32_t rank,
                      std::shared_ptr<const LiveRequest> request) {
  Worker& worker = workers_[place];
  stream.worker = place;
  stream.rank = rank == workload::kNone ? 0 : rank;
  ++worker.load.requests;
  worker.load.prefill_tokens += stream.prompt;
  if (worker.link->card().role == engine::WorkerRole::kDecode) {
    Computed(stream);
  }
  worker.link->Submit(rank, stream.number, std::move(request));
}

Result<void> Dispatcher::Route(Stream& stream, std::shared_ptr<const LiveRequest> request) {
  if (router_ == nullptr) {
    return FailedError("", kNobody);
  }
  const double now_ms = now_ms_();
  const workload::Request routed = table_.Add(request, now_ms);
  const std::size_t place = RequestTable::PlaceOf(routed.id);
  if (place >= routed_streams_.size()) {
    routed_streams_.resize(place + 1);
  }
  routed_streams_[place] = stream.number;
  stream.routed = routed.id;
  std::optional<router::Target> forced;
  if (request->dp_rank < shape_.ranks && role() != engine::WorkerRole::kPrefill) {
    forced = router::Target{next_worker_++ % shape_.workers, request->dp_rank};
  }
  stream.waiting = std::move(request);
  DYNO_TRY_VOID(
      router_->Place({.request = routed, .source = table_, .forced = forced}, now_ms, decisions_));
  ApplyDecisions();
  return {};
}

// What the router has decided, also about requests that waited.
void Dispatcher::ApplyDecisions() {
  for (const router::Decision& decision : std::exchange(decisions_, {})) {
    Stream* stream = Find(routed_streams_[RequestTable::PlaceOf(decision.request.id)]);
    if (stream != nullptr && stream->routed == decision.request.id && stream->waiting != nullptr) {
      Send(*stream, places_[decision.target.worker], decision.target.rank,
           std::exchange(stream->waiting, nullptr));
    }
  }
}

void Dispatcher::Unroute(const Stream& stream) {
  if (stream.routed == workload::kNone) {
    return;
  }
  if (router_ == nullptr) {
    // Nobody counts it.
  } else if (stream.worker == workload::kNone) {
    router_->CancelPending(stream.routed);
  } else {
    router_->Terminal(stream.routed, now_ms_(), decisions_);
  }
  table_.Remove(stream.routed);
}

Dispatcher::Stream* Dispatcher::Find(std::uint64_t number) {
  const auto place = static_cast<std::uint32_t>(number);
  return place < streams_.size() && streams_[place].number == number ? &streams_[place] : nullptr;
}

// From here on the prompt counts by its blocks.
void Dispatcher::Computed(Stream& stream) {
  Worker& worker = workers_[stream.worker];
  const std::uint64_t block = worker.link->card().block_size;
  stream.computed = true;
  worker.load.prefill_tokens -= stream.prompt;
  worker.load.blocks += (stream.length + block - 1) / block;
}

// A prefill worker has the prompt and keeps it.
void Dispatcher::OnHeld(Stream& stream) {
  if (stream.worker == workload::kNone || stream.computed) {
    return;
  }
  Computed(stream);
  if (stream.routed != workload::kNone && router_ != nullptr) {
    router_->PrefillDone(stream.routed, now_ms_(), decisions_);
  }
}

void Dispatcher::AddTokens(Stream& stream, std::uint64_t tokens) {
  Worker& worker = workers_[stream.worker];
  const std::uint64_t block = worker.link->card().block_size;
  const auto blocks = [&](std::uint64_t length) { return (length + block - 1) / block; };
  if (!stream.computed) {
    Computed(stream);
    const LiveRequest* routed = table_.Find(stream.routed);
    if (routed != nullptr && router_ != nullptr && tokens < routed->output_tokens) {
      router_->PrefillDone(stream.routed, now_ms_(), decisions_);
    }
  }
  worker.load.blocks += blocks(stream.length + tokens) - blocks(stream.length);
  stream.length += tokens;
}

void Dispatcher::Remove(Stream& stream) {
  if (stream.worker != workload::kNone) {
    Worker& worker = workers_[stream.worker];
    --worker.load.requests;
    if (!stream.computed) {
      worker.load.prefill_tokens -= stream.prompt;
    } else {
      const std::uint64_t block = worker.link->card().block_size;
      worker.load.blocks -= (stream.length + block - 1) / block;
    }
  }
  Unroute(stream);
  if (handoffs_ != nullptr) {
    handoffs_->End(stream.number);
  }
  --in_flight_;
  free_.push_back(static_cast<std::uint32_t>(stream.number));
  stream = {};
  ApplyDecisions();
}

void Dispatcher::Cancel(std::uint64_t number) {
  if (Stream* stream = Find(number)) {
    if (stream->worker != workload::kNone) {
      workers_[stream->worker].link->Cancel(number);
    }
    Remove(*stream);
  }
}

void Dispatcher::OnBatch(const std::vector<StreamEvent>& batch) {
  for (const StreamEvent& event : batch) {
    Stream* stream = Find(event.stream);
    if (stream == nullptr) {
      continue;
    }
    if (handoffs_ != nullptr &&
        (event.kind == StreamEvent::Kind::kReserved || event.kind == StreamEvent::Kind::kActive)) {
      handoffs_->OnDecodeWorker(event);
      continue;
    }
    const std::shared_ptr<StreamListener> listener = stream->listener;
    const std::uint32_t index = stream->index;
    if (event.kind == StreamEvent::Kind::kTokens) {
      AddTokens(*stream, event.amount);
      ApplyDecisions();
    } else if (event.kind == StreamEvent::Kind::kHeld) {
      OnHeld(*stream);
      ApplyDecisions();
    } else if (IsEnd(event.kind)) {
      Remove(*stream);
    }
    if (touched_.empty() || touched_.back() != listener) {
      touched_.push_back(listener);
    }
    listener->OnEvent(index, event);
  }
  for (const auto& listener : touched_) {
    listener->OnBatchEnd();
  }
  touched_.clear();
}

}  // namespace dynosim::live
