// SPDX-License-Identifier: Apache-2.0
// Rules of the flags of `replay`: first those between flags, in the documented order, then values.
#include "scenario/replay_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/json_argument.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "scenario/engine_pair.h"
#include "scenario/limits.h"
#include "scenario/router_flags.h"
#include "scenario/scenario.h"
#include "workload/spec.h"

namespace dynosim::scenario {
namespace {

constexpr std::string_view kPlanner = "the planner";
constexpr std::string_view kPerformanceModel = "the performance model";

constexpr std::array kUnavailable = {
    UnavailableFlag{"--planner-config", kPlanner},
    UnavailableFlag{"--benchmark-granularity", kPlanner},
    UnavailableFlag{"--aic-nextn-accept-rates", kPerformanceModel},
};

constexpr std::string_view kEngineFlag = "--extra-engine-args";
constexpr double kMax = std::numeric_limits<double>::max();

using Text = ReplayFlags::Text;

// Reads values of flags; remembers the first error.
class Reader {
 public:
  template <class T>
  void Integer(std::string_view flag, const Text& text, T min, T max, T& out) {
    if (!text || error_) {
      return;
    }
    T value{};
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < min || value > max) {
      std::string range = " from " + std::to_string(min) + " to " + std::to_string(max);
      if (max == std::numeric_limits<T>::max()) {
        constexpr bool kSigned = std::numeric_limits<T>::is_signed;
        const bool bounded = !kSigned || min != std::numeric_limits<T>::min();
        range = bounded ? " >= " + std::to_string(min) : "";
      }
      Fail(flag, "must be an integer" + range + ", got " + Quoted(*text));
      return;
    }
    out = value;
  }
  template <class T>
  void Integer(std::string_view flag, const Text& text, T min, T max, std::optional<T>& out) {
    if (text && !error_) {
      T value{};
      Integer(flag, text, min, max, value);
      out = value;
    }
  }
  // Counts whose limits the workload itself knows and checks.
  void Count(std::string_view flag, const Text& text, std::int64_t& out) {
    Integer<std::int64_t>(flag, text, std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max(), out);
  }

  enum class Bound { kNone, kNonNegative, kPositive };
  void Number(std::string_view flag, const Text& text, Bound bound, double& out) {
    if (!text || error_) {
      return;
    }
    double value = 0.0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, value);
    const bool parsed = read.ec == std::errc() && read.ptr == end && std::isfinite(value);
    if (!parsed || (bound == Bound::kNonNegative && value < 0.0) ||
        (bound == Bound::kPositive && value <= 0.0)) {
      constexpr std::array<std::string_view, 3> kRange = {"", " >= 0", " > 0"};
      Fail(flag, "must be a finite number" + std::string(kRange[static_cast<std::size_t>(bound)]) +
                     ", got " + Quoted(*text));
      return;
    }
    out = value;
  }
  void Number(std::string_view flag, const Text& text, Bound bound, std::optional<double>& out) {
    if (text && !error_) {
      double value = 0.0;
      Number(flag, text, bound, value);
      out = value;
    }
  }

  // A path that must not be empty.
  void Path(std::string_view flag, const Text& text, std::string& out) {
    if (!text || error_) {
      return;
    }
    if (text->empty()) {
      Fail(flag, "must not be empty");
    }
    out = *text;
  }

  void Fail(std::string_view flag, std::string message) {
    if (!error_) {
      error_ = Error{
          .kind = ErrorKind::kUsage, .where = std::string(flag), .message = std::move(message)};
    }
  }
  Result<void> Finish() const {
    if (error_) {
      return std::unexpected(*error_);
    }
    return {};
  }

 private:
  static std::string Quoted(std::string_view text) {
    constexpr std::size_t kLength = 60;
    std::string out;
    AppendJsonString(out, text.substr(0, kLength));
    return out;
  }

  std::optional<Error> error_;
};

using Bound = Reader::Bound;

Result<void> CheckChoices(const ReplayFlags& f) {
  if (f.replay_mode && *f.replay_mode != "offline" && *f.replay_mode != "online") {
    return UsageError("--replay-mode", "must be offline or online, got '" + *f.replay_mode + "'");
  }
  if (f.session_prompts && *f.session_prompts != "fixed" && *f.session_prompts != "cumulative") {
    return UsageError("--session-prompts",
                      "must be fixed or cumulative, got '" + *f.session_prompts + "'");
  }
  return {};
}

// What a run in real time does not have.
Result<void> CheckOnline(const ReplayFlags& f) {
  const auto refuse = [](const char* flag) {
    return UsageError(flag, "only supports --replay-mode offline");
  };
  if (f.capture_telemetry || f.telemetry_jsonl) {
    return refuse(f.telemetry_jsonl ? "--telemetry-jsonl" : "--capture-telemetry");
  }
  if (f.kv_event_lag_ms) {
    return refuse("--kv-event-lag-ms");
  }
  if (f.placements) {
    return refuse("--placements");
  }
  if (f.capture_routing) {
    return refuse("--capture-routing");
  }
  if (f.report_html) {
    return refuse("--report-html");
  }
  if (f.trace_out) {
    return refuse("--trace-out");
  }
  if (f.pass_by_pass) {
    return refuse("--pass-by-pass");
  }
  return {};
}

Result<void> CheckAvailable(const ReplayFlags& f) {
  if (f.replay_mode == "online") {
    DYNO_TRY_VOID(CheckOnline(f));
  }
  if (!f.unavailable.empty()) {
    const std::string& name = f.unavailable.front();
    const auto* flag = std::ranges::find(kUnavailable, name, &UnavailableFlag::name);
    const std::string subject(flag == kUnavailable.end() ? "its subject" : flag->subject);
    return UsageError(name, "is not available in this version (it belongs to " + subject + ")");
  }
  return {};
}

bool UsesSynthetic(const ReplayFlags& f, const workload::SyntheticSpec& values) {
  return f.input_tokens || f.output_tokens || f.request_count || values.turns_per_session != 1 ||
         values.shared_prefix_ratio != 0.0 || values.num_prefix_groups != 0 ||
         values.inter_turn_delay_ms != 0.0;
}

Result<void> CheckTraceOnly(const ReplayFlags& f, bool synthetic) {
  const std::pair<std::string_view, bool> flags[] = {
      {"--report-jsonl", f.report_jsonl.has_value()},
      {"--max-sim-time-seconds", f.max_sim_time_seconds.has_value()},
      {"--max-sim-time-ms", f.max_sim_time_ms.has_value()},
      {"--trace-format", f.trace_format.has_value()},
      {"--trace-block-size", f.trace_block_size.has_value()},
      {"--trace-shared-prefix-ratio", f.trace_shared_prefix_ratio.has_value()},
      {"--trace-num-prefix-groups", f.trace_num_prefix_groups.has_value()},
      {"--execution-model", f.execution_model.has_value()},
      {"--agentic-lanes", f.agentic_lanes.has_value()},
      {"--weka-nested-timestamp-basis", f.weka_nested_timestamp_basis.has_value()}};
  for (const auto& [name, given] : flags) {
    if (synthetic && given) {
      return UsageError(std::string(name), "only applies to the replay of a trace file");
    }
  }
  return {};
}

// Rules between flags, in the documented order.
Result<void> CheckCombinations(const ReplayFlags& f, bool synthetic) {
  const std::string format = f.trace_format.value_or("mooncake");
  const bool traced = !f.trace_files.empty();
  if (format == "dynamo" && !traced && !synthetic) {
    return UsageError("", "--trace-format=dynamo requires at least one trace file");
  }
  if (format != "dynamo" && f.trace_files.size() > 1) {
    return UsageError("", "--trace-format=" + format + " requires exactly one trace file, got " +
                              std::to_string(f.trace_files.size()));
  }
  if (traced == synthetic) {
    return UsageError(
        "",
        "provide either a trace file or all of --input-tokens, --output-tokens, --request-count");
  }
  if (synthetic && !(f.input_tokens && f.output_tokens && f.request_count)) {
    return UsageError("",
                      "a synthetic replay requires --input-tokens, --output-tokens and "
                      "--request-count");
  }
  const int controllers =
      (f.replay_concurrency ? 1 : 0) + (f.request_rate ? 1 : 0) + (f.arrival_interval_ms ? 1 : 0);
  if (synthetic && controllers != 1) {
    return UsageError("",
                      "a synthetic replay requires exactly one of --replay-concurrency, "
                      "--request-rate, --arrival-interval-ms");
  }
  if (traced && (f.request_rate || f.arrival_interval_ms)) {
    return UsageError("",
                      "--request-rate and --arrival-interval-ms only apply to a synthetic replay");
  }
  if (traced && (f.arrival_seed || f.session_prompts)) {
    return UsageError(f.arrival_seed ? "--arrival-seed" : "--session-prompts",
                      "only applies to a synthetic replay");
  }
  if (traced && format == "applied_compute_agentic" && !f.replay_concurrency) {
    return UsageError("",
                      "--trace-format=applied_compute_agentic requires --replay-concurrency: "
                      "its traces have no first-turn timestamps");
  }
  DYNO_TRY_VOID(CheckTraceOnly(f, synthetic));
  if (f.max_sim_time_seconds && f.max_sim_time_ms) {
    return UsageError("", "--max-sim-time-seconds and --max-sim-time-ms cannot be combined");
  }
  return {};
}

Result<void> ReadSynthetic(const ReplayFlags& f, workload::SyntheticSpec& s) {
  Reader read;
  read.Count("--input-tokens", f.input_tokens, s.input_tokens);
  read.Count("--output-tokens", f.output_tokens, s.output_tokens);
  read.Count("--request-count", f.request_count, s.request_count);
  read.Number("--request-rate", f.request_rate, Bound::kPositive, s.request_rate);
  read.Number("--arrival-interval-ms", f.arrival_interval_ms, Bound::kNonNegative,
              s.arrival_interval_ms);
  read.Integer<std::uint64_t>("--arrival-seed", f.arrival_seed, 0,
                              std::numeric_limits<std::uint64_t>::max(), s.arrival_seed);
  read.Count("--turns-per-session", f.turns_per_session, s.turns_per_session);
  read.Number("--shared-prefix-ratio", f.shared_prefix_ratio, Bound::kNone, s.shared_prefix_ratio);
  read.Count("--num-prefix-groups", f.num_prefix_groups, s.num_prefix_groups);
  read.Number("--inter-turn-delay-ms", f.inter_turn_delay_ms, Bound::kNone, s.inter_turn_delay_ms);
  if (f.session_prompts == "cumulative") {
    s.session_prompts = workload::SessionPrompts::kCumulative;
  }
  return read.Finish();
}

Result<void> ReadWorkload(const ReplayFlags& f, bool synthetic, workload::SyntheticSpec values,
                          workload::WorkloadSpec& w) {
  workload::TraceSpec trace;
  Reader read;
  trace.files = f.trace_files;
  trace.format = f.trace_format.value_or(trace.format);
  read.Integer<std::int64_t>("--trace-block-size", f.trace_block_size, 1,
                             std::numeric_limits<std::int64_t>::max(), trace.block_size);
  read.Number("--trace-shared-prefix-ratio", f.trace_shared_prefix_ratio, Bound::kNone,
              trace.shared_prefix_ratio);
  read.Count("--trace-num-prefix-groups", f.trace_num_prefix_groups, trace.num_prefix_groups);
  trace.execution_model = f.execution_model;
  read.Integer<std::int64_t>("--agentic-lanes", f.agentic_lanes, 1,
                             std::numeric_limits<std::int64_t>::max(), trace.agentic_lanes);
  trace.weka_nested_timestamp_basis = f.weka_nested_timestamp_basis;
  read.Integer<std::int64_t>("--replay-concurrency", f.replay_concurrency, 1,
                             std::numeric_limits<std::int64_t>::max(), w.replay_concurrency);
  read.Number("--arrival-speedup-ratio", f.arrival_speedup_ratio, Bound::kNone,
              w.arrival_speedup_ratio);
  if (synthetic) {
    w.synthetic = values;
  } else {
    w.trace = std::move(trace);
  }
  return read.Finish();
}

Result<void> ReadRun(const ReplayFlags& f, Scenario& s) {
  Reader read;
  read.Integer<std::uint32_t>("--num-workers", f.num_workers, 1, kMaxWorkers, s.num_workers);
  read.Integer<std::uint32_t>("--num-prefill-workers", f.num_prefill_workers, 1, kMaxWorkers,
                              s.num_prefill_workers);
  read.Integer<std::uint32_t>("--num-decode-workers", f.num_decode_workers, 1, kMaxWorkers,
                              s.num_decode_workers);
  read.Number("--max-sim-time-ms", f.max_sim_time_ms, Bound::kNonNegative, s.max_sim_time_ms);
  if (f.max_sim_time_seconds) {
    read.Number("--max-sim-time-seconds", f.max_sim_time_seconds, Bound::kNonNegative,
                s.max_sim_time_ms);
    s.max_sim_time_ms = std::min(s.max_sim_time_ms.value_or(0.0) * 1000.0, kMax);
  }
  read.Number("--sla-ttft-ms", f.sla_ttft_ms, Bound::kPositive, s.goodput.ttft_ms);
  read.Number("--sla-itl-ms", f.sla_itl_ms, Bound::kPositive, s.goodput.itl_ms);
  read.Number("--sla-e2e-ms", f.sla_e2e_ms, Bound::kPositive, s.goodput.e2e_ms);
  if (f.sla_e2e_ms && (f.sla_ttft_ms || f.sla_itl_ms)) {
    read.Fail("--sla-e2e-ms", "cannot be combined with --sla-ttft-ms or --sla-itl-ms");
  }
  s.telemetry.capture = f.capture_telemetry;
  read.Path("--telemetry-jsonl", f.telemetry_jsonl, s.telemetry.jsonl_path);
  read.Number("--telemetry-sample-interval-ms", f.telemetry_sample_interval_ms, Bound::kPositive,
              s.telemetry.sample_interval_ms);
  s.capture_per_request = f.capture_per_request || f.report_jsonl.has_value();
  s.timeline = f.report_html.has_value() || f.trace_out.has_value();
  s.telemetry.page = f.report_html.has_value();
  s.telemetry.fits_page = s.telemetry.page && !s.telemetry.capture &&
                          s.telemetry.jsonl_path.empty() && !f.telemetry_sample_interval_ms;
  if (s.telemetry.fits_page) {
    s.telemetry.sample_interval_ms = 1.0;
  }
  s.pass_by_pass = f.pass_by_pass;
  s.online = f.replay_mode == "online";
  return read.Finish();
}

Result<engine::EngineSettings> ReadEngine(std::string_view flag, const Text& text,
                                          engine::WorkerRole role) {
  DYNO_TRY(const Json json, JsonOfArgument(flag, text.value_or("{}")));
  DYNO_TRY(engine::EngineSettings settings, engine::DecodeEngineSettings(json, flag));
  DYNO_TRY_VOID(CheckEngineRole(flag, settings, role));
  return settings;
}

Result<void> CheckRanks(std::string_view flag, std::uint32_t workers,
                        const engine::EngineSettings& settings) {
  if (std::uint64_t{workers} * settings.dp_size > kMaxRanks) {
    return UsageError(std::string(flag), "times dp_size must be at most " +
                                             std::to_string(kMaxRanks) + " ranks, got " +
                                             std::to_string(workers) + " workers of " +
                                             std::to_string(settings.dp_size));
  }
  return {};
}

Result<void> ReadDisaggregated(const ReplayFlags& f, Scenario& s) {
  if (!f.prefill_engine_args || !f.decode_engine_args) {
    return UsageError("", "--prefill-engine-args and --decode-engine-args must be given together");
  }
  if (f.extra_engine_args || f.num_workers) {
    return UsageError(f.extra_engine_args ? std::string(kEngineFlag) : "--num-workers",
                      "cannot be combined with --prefill-engine-args and --decode-engine-args");
  }
  DYNO_TRY(s.prefill_engine,
           ReadEngine(kPrefillEngineFlag, f.prefill_engine_args, engine::WorkerRole::kPrefill));
  DYNO_TRY(s.decode_engine,
           ReadEngine(kDecodeEngineFlag, f.decode_engine_args, engine::WorkerRole::kDecode));
  DYNO_TRY_VOID(CheckEnginePair(*s.prefill_engine, *s.decode_engine));
  DYNO_TRY_VOID(CheckRanks("--num-prefill-workers", s.num_prefill_workers, *s.prefill_engine));
  return CheckRanks("--num-decode-workers", s.num_decode_workers, *s.decode_engine);
}

Result<void> ReadEngines(const ReplayFlags& f, Scenario& s) {
  if (f.prefill_engine_args || f.decode_engine_args) {
    return ReadDisaggregated(f, s);
  }
  if (f.num_prefill_workers || f.num_decode_workers) {
    return UsageError(f.num_prefill_workers ? "--num-prefill-workers" : "--num-decode-workers",
                      "needs --prefill-engine-args and --decode-engine-args");
  }
  DYNO_TRY(s.engine, ReadEngine(kEngineFlag, f.extra_engine_args, engine::WorkerRole::kAggregated));
  return CheckRanks("--num-workers", s.num_workers, s.engine);
}

}  // namespace

std::span<const UnavailableFlag> UnavailableFlags() { return kUnavailable; }

Result<Replay> BuildReplay(const ReplayFlags& flags) {
  DYNO_TRY_VOID(CheckChoices(flags));
  workload::SyntheticSpec synthetic;
  DYNO_TRY_VOID(ReadSynthetic(flags, synthetic));
  const bool is_synthetic = UsesSynthetic(flags, synthetic);
  DYNO_TRY_VOID(CheckCombinations(flags, is_synthetic));
  DYNO_TRY_VOID(CheckAvailable(flags));
  Replay replay;
  DYNO_TRY_VOID(ReadWorkload(flags, is_synthetic, synthetic, replay.scenario.workload));
  DYNO_TRY_VOID(ReadRun(flags, replay.scenario));
  DYNO_TRY_VOID(ReadEngines(flags, replay.scenario));
  DYNO_TRY_VOID(ReadRouterFlags(flags, replay.scenario));
  Reader paths;
  paths.Path("--report-json", flags.report_json, replay.report_json);
  paths.Path("--report-jsonl", flags.report_jsonl, replay.report_jsonl);
  paths.Path("--report-html", flags.report_html, replay.report_html);
  paths.Path("--trace-out", flags.trace_out, replay.trace_out);
  DYNO_TRY_VOID(paths.Finish());
  return replay;
}

}  // namespace dynosim::scenario
