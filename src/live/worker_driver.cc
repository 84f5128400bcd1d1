// SPDX-License-Identifier: Apache-2.0
#include "live/worker_driver.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/effects.h"
#include "engine/kv_event_buffer.h"
#include "engine/settings.h"
#include "engine/worker.h"
#include "workload/request.h"
#include "workload/source.h"

namespace dynosim::live {

namespace {

// Passes of no duration and no effect in a row after which a worker counts as stuck.
constexpr std::uint64_t kIdlePasses = 10000;

// A worker that is later than this stood still (a suspended machine) and does not catch up.
constexpr double kMadeUpMs = 100.0;

}  // namespace

WorkerDriver::WorkerDriver(const engine::EngineSettings& settings, std::uint32_t id,
                           const DriverOptions& options, const workload::RequestSource& source,
                           PassSink& sink)
    : worker_(settings, id,
              {.fast_path = false,
               .capture_metrics = options.pass_metrics,
               .capture_kv_events = options.kv_events,
               .capture_tokens = true}),
      options_(options),
      source_(source),
      sink_(sink),
      took_part_(settings.dp_size, false) {}

void WorkerDriver::Submit(const workload::Request& request, std::uint32_t rank, double at_ms) {
  worker_.Submit(request, source_, rank, at_ms, false);
  const std::optional<double> ready_ms = std::max(ready_ms_.value_or(last_end_ms_), at_ms);
  AfterCommand(rank);
  ready_ms_ = ready_ms;
}

bool WorkerDriver::Cancel(std::uint32_t request, std::uint32_t rank, double now_ms) {
  const bool found = worker_.Cancel(rank, request, now_ms);
  AfterCommand(rank);
  return found;
}

bool WorkerDriver::QueueReservation(const workload::Request& request, std::uint32_t rank,
                                    double now_ms, engine::Rejection& why) {
  const bool accepted = worker_.QueueReservation(rank, request, source_, now_ms, false, why);
  AfterCommand(rank);
  return accepted;
}

std::optional<engine::Grant> WorkerDriver::TryReserve(std::uint32_t rank) {
  const std::optional<engine::Grant> grant = worker_.TryReserve(rank);
  AfterCommand(rank);
  return grant;
}

void WorkerDriver::Activate(std::uint32_t request, std::uint32_t rank) {
  worker_.Activate(rank, request);
  AfterCommand(rank);
}

void WorkerDriver::ReleaseSource(std::uint32_t request, std::uint32_t rank) {
  worker_.ReleaseSource(rank, request);
  AfterCommand(rank);
}

void WorkerDriver::CancelSource(std::uint32_t request, std::uint32_t rank) {
  worker_.CancelSource(rank, request);
  AfterCommand(rank);
}

void WorkerDriver::CancelDestination(std::uint32_t request, std::uint32_t rank) {
  worker_.CancelDestination(rank, request);
  AfterCommand(rank);
}

// Events of commands during a pass go out with those of the pass.
void WorkerDriver::AfterCommand(std::uint32_t rank) {
  stuck_ = aside_ = false;
  ready_ms_.reset();
  if (!worker_.Busy()) {
    PublishEvents(rank);
  }
  sink_.OnGauges(rank, worker_.core(rank).Metrics());
}

bool WorkerDriver::Unstick(double now_ms) {
  static constexpr engine::ForwardPassMetrics kIdle = {};
  for (std::uint32_t stuck = 0; stuck < worker_.ranks(); ++stuck) {
    if (!worker_.ActWhenStuck(stuck)) {
      continue;
    }
    for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
      PublishEvents(rank);
      sink_.OnRankPass({.rank = rank, .effects = worker_.Effects(rank), .metrics = kIdle}, 0.0,
                       now_ms, now_ms);
    }
    sink_.OnPassEnd(now_ms);
    AfterCommand(stuck);
    return true;
  }
  return false;
}

void WorkerDriver::Complete(double now_ms) {
  if (worker_.Busy() && worker_.NextMs() <= now_ms) {
    Finish(now_ms);
  }
}

void WorkerDriver::Start(double now_ms) {
  for (std::uint64_t passes = 0; passes < options_.instant_passes && CanStart(); ++passes) {
    const double ready_ms = ready_ms_.value_or(now_ms);
    const bool make_up = !options_.keep_lateness && ready_ms >= now_ms - kMadeUpMs;
    started_ms_ = make_up ? std::min(ready_ms, now_ms) : now_ms;
    for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
      took_part_[rank] = worker_.core(rank).HasWork();
    }
    worker_.Start(started_ms_);
    if (worker_.Failed()) {
      stuck_ = true;
      worker_.Complete();
      sink_.OnStuck(now_ms);
      return;
    }
    for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
      for (const engine::Admission& admission : worker_.Effects(rank).admissions) {
        sink_.OnAdmitted(admission, now_ms);
      }
    }
    if (worker_.NextMs() > now_ms) {
      return;
    }
    const bool no_time = worker_.NextMs() == started_ms_;
    Finish(now_ms);
    if (!no_time) {
      return;  // late already: the caller's other work comes first
    }
    if (options_.set_aside && !worker_.HadEffect()) {
      aside_ = true;
      ready_ms_.reset();
      return;
    }
    idle_passes_ = worker_.HadEffect() ? 0 : idle_passes_ + 1;
    if (idle_passes_ > kIdlePasses) {
      idle_passes_ = 0;
      stuck_ = true;
      sink_.OnStuck(now_ms);
      return;
    }
  }
}

void WorkerDriver::Finish(double now_ms) {
  static constexpr engine::ForwardPassMetrics kIdle = {};
  last_end_ms_ = worker_.NextMs();
  worker_.Complete();
  if (options_.keep_log) {
    worker_.log().MoveLastEnd(now_ms);
  }
  for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
    PublishEvents(rank);
    sink_.OnRankPass({.rank = rank,
                      .effects = worker_.Effects(rank),
                      .metrics = took_part_[rank] ? worker_.core(rank).LastPassMetrics() : kIdle},
                     last_end_ms_ - started_ms_, last_end_ms_, now_ms);
  }
  sink_.OnPassEnd(now_ms);
  for (std::uint32_t rank = 0; rank < worker_.ranks(); ++rank) {
    sink_.OnGauges(rank, worker_.core(rank).Metrics());
  }
  ready_ms_ = worker_.CanStart() ? std::optional(last_end_ms_) : std::nullopt;
  if (!options_.keep_log) {
    worker_.log().DropBefore(worker_.passes());
  }
}

void WorkerDriver::PublishEvents(std::uint32_t rank) {
  if (!options_.kv_events) {
    return;
  }
  engine::KvEventBuffer& buffer = worker_.kv_buffer(rank);
  if (const std::size_t count = buffer.records().size(); count > 0) {
    sink_.OnKvEvents(rank, buffer, count);
    buffer.Drop(count);
  }
}

}  // namespace dynosim::live
