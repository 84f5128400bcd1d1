// SPDX-License-Identifier: Apache-2.0
#include "workload/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/numeric.h"
#include "base/result.h"
#include "base/time.h"
#include "workload/arrivals.h"
#include "workload/limits.h"
#include "workload/session_queue.h"
#include "workload/source.h"
#include "workload/spec.h"
#include "workload/synthetic_list.h"
#include "workload/synthetic_sessions.h"

namespace dynosim::workload {
namespace {

bool HasSessionShape(const SyntheticSpec& spec) {
  return spec.turns_per_session > 1 || spec.shared_prefix_ratio > 0.0 ||
         spec.num_prefix_groups > 0 || spec.inter_turn_delay_ms > 0.0;
}

Result<void> CheckController(const WorkloadSpec& workload, const SyntheticSpec& spec) {
  const int controllers = (workload.replay_concurrency ? 1 : 0) + (spec.request_rate ? 1 : 0) +
                          (spec.arrival_interval_ms ? 1 : 0);
  if (controllers != 1) {
    return UsageError("synthetic workload",
                      fmt::format("exactly one of --replay-concurrency, --request-rate and "
                                  "--arrival-interval-ms must be given, got {}",
                                  controllers));
  }
  DYNO_TRY_VOID(CheckConcurrency(workload));
  if (spec.request_rate && !(std::isfinite(*spec.request_rate) && *spec.request_rate > 0.0)) {
    return UsageError("--request-rate",
                      fmt::format("must be a finite positive number, got {}", *spec.request_rate));
  }
  if (spec.arrival_interval_ms &&
      !(std::isfinite(*spec.arrival_interval_ms) && *spec.arrival_interval_ms >= 0.0)) {
    return UsageError(
        "--arrival-interval-ms",
        fmt::format("must be a finite number of at least 0, got {}", *spec.arrival_interval_ms));
  }
  return {};
}

Result<void> CheckCount(const char* option, std::int64_t value, std::uint64_t max) {
  if (value < 1 || static_cast<std::uint64_t>(value) > max) {
    return UsageError(option, fmt::format("must be between 1 and {}, got {}", max, value));
  }
  return {};
}

Result<void> CheckSessionOptions(const SyntheticSpec& spec) {
  DYNO_TRY_VOID(CheckCount("--turns-per-session", spec.turns_per_session, kMaxRequests));
  if (static_cast<std::uint64_t>(spec.turns_per_session) >
      kMaxRequests / static_cast<std::uint64_t>(spec.request_count)) {
    return UsageError("--turns-per-session",
                      fmt::format("{} sessions of {} turns are more than {} requests",
                                  spec.request_count, spec.turns_per_session, kMaxRequests));
  }
  if (!(std::isfinite(spec.inter_turn_delay_ms) && spec.inter_turn_delay_ms >= 0.0)) {
    return UsageError(
        "--inter-turn-delay-ms",
        fmt::format("must be a finite number of at least 0, got {}", spec.inter_turn_delay_ms));
  }
  if (!(spec.shared_prefix_ratio >= 0.0 && spec.shared_prefix_ratio <= 1.0)) {
    return UsageError("--shared-prefix-ratio",
                      fmt::format("must be between 0.0 and 1.0, got {}", spec.shared_prefix_ratio));
  }
  constexpr std::int64_t kMaxGroups = std::numeric_limits<std::uint32_t>::max();
  if (spec.num_prefix_groups < 0 || spec.num_prefix_groups > kMaxGroups) {
    return UsageError("--num-prefix-groups", fmt::format("must be between 0 and {}, got {}",
                                                         kMaxGroups, spec.num_prefix_groups));
  }
  return {};
}

ArrivalProcess Arrivals(const SyntheticSpec& spec) {
  return spec.request_rate ? ArrivalProcess::Poisson(*spec.request_rate, spec.arrival_seed)
                           : ArrivalProcess::FixedInterval(spec.arrival_interval_ms.value_or(0.0));
}

std::unique_ptr<RequestSource> MakeSessions(const WorkloadSpec& workload, const SyntheticSpec& spec,
                                            std::uint64_t engine_block_size) {
  SyntheticSessionsSettings settings{
      .sessions = static_cast<std::uint32_t>(spec.request_count),
      .turns = static_cast<std::uint32_t>(spec.turns_per_session),
      .input_tokens = static_cast<std::uint64_t>(spec.input_tokens),
      .output_tokens = static_cast<std::uint64_t>(spec.output_tokens),
      .block_size = std::max<std::uint64_t>(engine_block_size, 1),
      .turn_delay_ms = spec.inter_turn_delay_ms,
      .cumulative = spec.session_prompts == SessionPrompts::kCumulative};
  const std::uint64_t blocks =
      (settings.input_tokens + settings.block_size - 1) / settings.block_size;
  settings.shared_blocks =
      std::min(blocks, SaturatingCast<std::uint64_t>(
                           RoundHalfAway(static_cast<double>(blocks) * spec.shared_prefix_ratio)));
  if (spec.num_prefix_groups > 0 && spec.shared_prefix_ratio > 0.0) {
    settings.groups = static_cast<std::uint32_t>(spec.num_prefix_groups);
  }
  if (workload.replay_concurrency) {
    const auto cap = static_cast<std::uint64_t>(*workload.replay_concurrency);
    return std::make_unique<SyntheticSessions>(settings,
                                               SessionQueue::Capped(settings.sessions, cap));
  }
  const double speedup = workload.arrival_speedup_ratio;
  settings.turn_delay_ms = WithinTime(settings.turn_delay_ms / speedup);
  std::vector<double> first_ready_ms(settings.sessions);
  ArrivalProcess arrivals = Arrivals(spec);
  for (double& at_ms : first_ready_ms) {
    at_ms = WithinTime(arrivals.NextMs() / speedup);
    arrivals.Advance();
  }
  return std::make_unique<SyntheticSessions>(settings,
                                             SessionQueue::OpenLoop(std::move(first_ready_ms)));
}

}  // namespace

Result<std::unique_ptr<RequestSource>> MakeSyntheticSource(const WorkloadSpec& workload,
                                                           const SyntheticSpec& spec,
                                                           std::uint64_t engine_block_size) {
  DYNO_TRY_VOID(CheckController(workload, spec));
  DYNO_TRY_VOID(CheckCount("--input-tokens", spec.input_tokens, kMaxTokens));
  DYNO_TRY_VOID(CheckCount("--output-tokens", spec.output_tokens, kMaxTokens));
  DYNO_TRY_VOID(CheckCount("--request-count", spec.request_count, kMaxRequests));
  const bool sessions = HasSessionShape(spec);
  if (sessions) {
    DYNO_TRY_VOID(CheckSessionOptions(spec));
  }
  DYNO_TRY_VOID(CheckSpeedup(workload));
  if (sessions) {
    return MakeSessions(workload, spec, engine_block_size);
  }
  SyntheticListSettings settings{.count = static_cast<std::uint32_t>(spec.request_count),
                                 .input_tokens = static_cast<std::uint64_t>(spec.input_tokens),
                                 .output_tokens = static_cast<std::uint64_t>(spec.output_tokens),
                                 .speedup = workload.arrival_speedup_ratio};
  if (workload.replay_concurrency) {
    settings.cap = static_cast<std::uint64_t>(*workload.replay_concurrency);
  }
  return std::make_unique<SyntheticList>(settings, Arrivals(spec));
}

}  // namespace dynosim::workload
