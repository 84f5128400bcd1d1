// SPDX-License-Identifier: Apache-2.0
#include "live/engine_host.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/settings.h"
#include "engine/transfer.h"
#include "live/clock.h"
#include "live/handoff_coordinator.h"
#include "live/handoff_half.h"
#include "live/hosted_pools.h"
#include "live/hosted_worker.h"
#include "live/live_request.h"
#include "live/prompt_thread.h"
#include "live/worker_driver.h"
#include "live/worker_handoffs.h"
#include "live/worker_metrics.h"
#include "workload/request.h"

namespace dynosim::live {

namespace {

// What the server needs to read a request is not modelled, and the request counts from when it
// came. One that took longer, or waited for its worker, counts from this long ago.
constexpr double kReadingMs = 1.0;

struct Command {
  enum class Kind : std::uint8_t { kSubmit, kCancel, kProceed };
  Kind kind = Kind::kSubmit;
  std::uint32_t worker = 0;
  std::uint32_t rank = workload::kNone;
  std::uint64_t stream = 0;
  std::shared_ptr<const LiveRequest> request{};
  engine::TransferTerms terms{};
  double at_ms = 0.0;  // when it was given
};

}  // namespace

struct EngineHost::State {
  explicit State(HostOptions host_options) : options(std::move(host_options)) {
    if (!options.pools) {
      for (std::uint32_t id = 0; id < options.workers; ++id) {
        AddWorker(options.engine, std::to_string(id));
      }
      return;
    }
    HandoffOptions& both = *options.pools;
    both.id_mask = RequestTable::kPlaceMask;
    pools = std::make_unique<HostedPools>(both, requests, batch);
    for (std::uint32_t id = 0; id < both.prefill_workers; ++id) {
      AddWorker(both.prefill, "prefill-" + std::to_string(id));
    }
    for (std::uint32_t id = 0; id < both.decode_workers; ++id) {
      AddWorker(both.decode, "decode-" + std::to_string(id));
    }
  }

  void AddWorker(const engine::EngineSettings& engine, std::string name) {
    const auto place = static_cast<std::uint32_t>(workers.size());
    WorkerHandoffs* handoffs = pools == nullptr ? nullptr : &pools->coordinator();
    HandoffHalf* half = nullptr;
    if (pools == nullptr && engine.worker_role != engine::WorkerRole::kAggregated) {
      halves.push_back(HandoffHalf::Make(engine, options.handoff_timeout_ms, requests));
      handoffs = half = halves.back().get();
    }
    workers.push_back(std::make_unique<HostedWorker>(
        options, engine,
        HostedPlace{
            .place = place, .name = std::move(name), .channel = channels, .handoffs = handoffs},
        requests, batch));
    channels += engine.dp_size;
    if (pools != nullptr) {
      pools->AddWorker(*workers.back());
    }
    if (half != nullptr) {
      half->Attach(*workers.back());
    }
  }

  void Post(Command command) {
    {
      const std::lock_guard lock(mutex);
      commands.push_back(std::move(command));
    }
    wake.notify_one();
  }

  void Run();
  void Apply(std::vector<Command>& list);
  void ActPools();
  void ActHalves();
  void UnstickHalves();
  void Deliver() {
    if (!batch.empty()) {
      options.deliver(std::exchange(batch, {}));
    }
  }
  double NextMs();
  void Wait(std::unique_lock<std::mutex>& lock);

  HostOptions options;
  MonotonicClock clock;
  SharedRequests requests;
  std::vector<StreamEvent> batch;
  std::unique_ptr<HostedPools> pools;  // null: workers serve whole requests
  // One per worker whose handoffs have their other half elsewhere; else empty.
  std::vector<std::unique_ptr<HandoffHalf>> halves;
  std::vector<std::unique_ptr<HostedWorker>> workers;
  std::size_t channels = 0;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Command> commands;
  bool stop = false;
  std::thread thread;
};

void EngineHost::State::Apply(std::vector<Command>& list) {
  for (Command& command : list) {
    const double now_ms = clock.NowMs();
    HostedWorker& worker = *workers[command.worker];
    HandoffHalf* half = halves.empty() ? nullptr : halves[command.worker].get();
    if (command.kind == Command::Kind::kProceed) {
      if (half != nullptr) {
        half->Proceed(command.stream, command.terms, command.at_ms);
      }
    } else if (command.kind == Command::Kind::kSubmit) {
      if (half != nullptr) {
        half->Submit(command.stream, command.rank, std::move(command.request), command.at_ms);
      } else if (pools != nullptr) {
        pools->Submit(command.stream, command.rank, std::move(command.request), now_ms);
      } else {
        worker.Submit(command.stream, command.rank, std::move(command.request), command.at_ms);
      }
    } else if (half != nullptr) {
      half->Cancel(command.stream, now_ms);
    } else if (pools != nullptr) {
      pools->Cancel(command.stream, now_ms);
    } else {
      worker.Cancel(command.stream, now_ms);
    }
  }
  list.clear();
}

void EngineHost::State::ActPools() {
  if (pools == nullptr) {
    return;
  }
  pools->coordinator().Act(clock.NowMs());
  for (const auto& worker : workers) {
    worker->driver().Wake();
    if (!worker->driver().NextMs()) {
      worker->ForgetLeft();
    }
  }
}

void EngineHost::State::ActHalves() {
  for (std::size_t id = 0; id < halves.size(); ++id) {
    halves[id]->Act(clock.NowMs());
    if (!workers[id]->driver().NextMs()) {
      workers[id]->ForgetLeft();
    }
  }
}

void EngineHost::State::UnstickHalves() {
  for (std::size_t id = 0; id < halves.size(); ++id) {
    const WorkerDriver& driver = workers[id]->driver();
    if (!driver.NextMs() && !driver.CanStart()) {
      halves[id]->Unstick(clock.NowMs());
    }
  }
}

void EngineHost::State::Run() {
  WakePromptly();
  std::vector<Command> list;
  std::unique_lock lock(mutex);
  while (!stop) {
    std::swap(list, commands);
    lock.unlock();
    for (const auto& worker : workers) {
      worker->driver().Complete(clock.NowMs());
      if (!worker->driver().NextMs()) {
        worker->ForgetLeft();
      }
    }
    Deliver();
    Apply(list);
    ActPools();
    ActHalves();
    if (clock.NowMs() >= options.startup_ms) {
      for (const auto& worker : workers) {
        if (worker->driver().CanStart()) {
          worker->driver().Start(clock.NowMs());
        }
      }
    }
    if (pools != nullptr && pools->coordinator().in_flight() > 0 &&
        NextMs() == std::numeric_limits<double>::infinity()) {
      pools->Unstick(clock.NowMs());
    }
    UnstickHalves();
    Deliver();
    lock.lock();
    Wait(lock);
  }
}

// When the next pass or transfer ends, or a worker can start; infinity if nothing is to come.
double EngineHost::State::NextMs() {
  double next_ms = std::numeric_limits<double>::infinity();
  if (pools != nullptr) {
    next_ms = pools->coordinator().NextMs(0.0).value_or(next_ms);
  }
  for (const auto& half : halves) {
    next_ms = std::min(next_ms, half->NextMs());
  }
  for (const auto& worker : workers) {
    const WorkerDriver& driver = worker->driver();
    if (driver.CanStart()) {
      next_ms = std::min(next_ms, options.startup_ms);
    }
    next_ms = std::min(next_ms, driver.NextMs().value_or(next_ms));
  }
  return next_ms;
}

// Sleeps until something is due or a command comes.
void EngineHost::State::Wait(std::unique_lock<std::mutex>& lock) {
  double next_ms = NextMs();
  for (const auto& worker : workers) {
    next_ms = std::min(next_ms, worker->Heartbeat(clock.NowMs()));
  }
  const auto due = [&] { return stop || !commands.empty(); };
  if (next_ms == std::numeric_limits<double>::infinity()) {
    wake.wait(lock, due);
  } else if (next_ms > clock.NowMs()) {
    wake.wait_until(lock, clock.At(next_ms), due);
  }
}

EngineHost::EngineHost(HostOptions options) : state_(std::make_unique<State>(std::move(options))) {}

EngineHost::~EngineHost() { Stop(); }

void EngineHost::Start() {
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

void EngineHost::Stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
}

const MonotonicClock& EngineHost::clock() const { return state_->clock; }

void EngineHost::Submit(std::uint32_t worker, std::uint32_t rank, std::uint64_t stream,
                        std::shared_ptr<const LiveRequest> request) {
  double at_ms = state_->clock.NowMs();
  if (request->received) {
    at_ms = std::max(state_->clock.MsOf(*request->received), at_ms - kReadingMs);
  }
  state_->Post({.kind = Command::Kind::kSubmit,
                .worker = worker,
                .rank = rank,
                .stream = stream,
                .request = std::move(request),
                .at_ms = at_ms});
}

void EngineHost::Cancel(std::uint32_t worker, std::uint64_t stream) {
  state_->Post({.kind = Command::Kind::kCancel, .worker = worker, .stream = stream});
}

void EngineHost::Proceed(std::uint32_t worker, std::uint64_t stream,
                         const engine::TransferTerms& terms) {
  state_->Post({.kind = Command::Kind::kProceed,
                .worker = worker,
                .stream = stream,
                .terms = terms,
                .at_ms = state_->clock.NowMs()});
}

bool EngineHost::started_up() const { return state_->clock.NowMs() >= state_->options.startup_ms; }

WorkerStats EngineHost::Stats(std::uint32_t worker) const {
  return state_->workers[worker]->Stats();
}

}  // namespace dynosim::live
