// SPDX-License-Identifier: Apache-2.0
#include "scenario/traffic_section.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/numeric.h"
#include "config/decode.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/traces/registry.h"

namespace dynosim::scenario {
namespace {

using config::Choice;
using config::Decoder;
using config::IntegerRange;
using config::Variant;
using workload::SessionPrompts;

constexpr IntegerRange kTokens{.min = 1, .max = workload::kMaxTokens};
constexpr IntegerRange kRequests{.min = 1, .max = workload::kMaxRequests};
constexpr IntegerRange kInt64{.min = 1, .max = 9'223'372'036'854'775'807};
constexpr IntegerRange kGroups{.min = 0, .max = 4'294'967'295};
constexpr std::uint64_t kDefaultRequests = 100;
constexpr std::string_view kLater = "is not available in this version";

constexpr std::array kPrompts = {Choice<SessionPrompts>{"cumulative", SessionPrompts::kCumulative},
                                 Choice<SessionPrompts>{"fixed", SessionPrompts::kFixed}};

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::string Named(std::string_view kind, const std::string& name) {
  return std::string(kind) + " \"" + name + "\"";
}

void SyntheticFields(Decoder& v, SourceSection& s) {
  v.Doc("Prompt tokens of a request.").Field("input_tokens", s.input_tokens, kTokens);
  v.Doc("Output tokens of a request.").Field("output_tokens", s.output_tokens, kTokens);
}

void SessionFields(Decoder& v, SessionSection& s) {
  v.Doc("Turns of a session.")
      .Field("turns", s.turns, IntegerRange{.min = 2, .max = workload::kMaxRequests});
  v.Doc("Share of the first prompt that the sessions of one group have in common.")
      .Field("shared_prefix_ratio", s.shared_prefix_ratio, config::kShare);
  v.Doc("Number of groups that share a prefix.").Field("prefix_groups", s.prefix_groups, kGroups);
  v.Doc("Time between the end of a turn and the next one, in ms.")
      .Field("inter_turn_delay_ms", s.inter_turn_delay_ms, config::kNonNegative);
  v.Doc("cumulative: a turn repeats the conversation so far; fixed: it is its new input alone.")
      .Field("prompts", s.prompts, kPrompts);
  if (s.shared_prefix_ratio > 0.0 && s.prefix_groups == 0) {
    v.Fail("prefix_groups", "must be >= 1 when shared_prefix_ratio is positive");
  }
}

void SyntheticSessionFields(Decoder& v, SourceSection& s) {
  v.Doc("Tokens that a turn adds to the conversation.")
      .Field("new_input_tokens_per_turn", s.input_tokens, kTokens);
  v.Doc("Output tokens of a turn.").Field("output_tokens_per_turn", s.output_tokens, kTokens);
  v.Require("session");
  v.Doc("Shape of a session.").Object("session", [&](Decoder& session) {
    SessionFields(session, s.session);
  });
}

void TraceFields(Decoder& v, SourceSection& s) {
  static const std::vector<std::string_view> formats = workload::TraceFormatNames();
  constexpr std::array<std::string_view, 3> kBases = {"auto", "absolute", "relative"};
  v.Require("paths");
  v.Doc("Trace files, .gz and .zst too; more than one for the format dynamo only.")
      .Field("paths", s.paths);
  v.Doc("Format of the trace.").Field("format", s.format, formats);
  v.Doc("Tokens that one hash id stands for; by default 512, or what the trace says.")
      .Field("block_size", s.block_size, kInt64);
  std::string basis;
  v.Doc("Times inside weka subagents.").Field("nested_timestamp_basis", basis, kBases);
  if (!basis.empty()) {
    s.nested_timestamp_basis = basis;
  }
  if (s.paths.size() > 1 && s.format != "dynamo") {
    v.Fail("paths", Named("format", s.format) + " takes exactly one path, got " +
                        std::to_string(s.paths.size()));
  }
  if (s.nested_timestamp_basis && s.format != "weka") {
    v.Fail("nested_timestamp_basis", "needs format weka, got " + s.format);
  }
}

void SourceFields(Decoder& v, SourceSection& s) {
  const std::array forms = {Variant{"synthetic", "Independent requests of equal lengths.",
                                    [&](Decoder& form) { SyntheticFields(form, s); }},
                            Variant{"synthetic-session", "Conversations of several turns.",
                                    [&](Decoder& form) { SyntheticSessionFields(form, s); }},
                            Variant{"trace", "Requests of recorded files.",
                                    [&](Decoder& form) { TraceFields(form, s); }}};
  s.type = static_cast<SourceType>(v.Variants("type", forms));
}

void RateFields(Decoder& v, LoadSection& l) {
  v.Doc("Requests per second, for a synthetic source.")
      .Field("requests_per_second", l.requests_per_second, config::kAboveZero);
  v.Doc("Sessions per second, for a synthetic-session source.")
      .Field("sessions_per_second", l.sessions_per_second, config::kAboveZero);
}

void LoadFields(Decoder& v, LoadSection& l) {
  const std::array forms = {
      Variant{
          "concurrency", "Closed loop: so many requests or sessions at a time.",
          [&](Decoder& form) {
            form.Doc("Requests or sessions in flight.").Field("concurrency", l.concurrency, kInt64);
          }},
      Variant{"poisson", "Random arrivals of a given mean rate.",
              [&](Decoder& form) {
                RateFields(form, l);
                form.Doc("Seed of the arrivals.").Field("seed", l.seed);
              }},
      Variant{"constant_rate", "Arrivals at equal distances.",
              [&](Decoder& form) { RateFields(form, l); }},
      Variant{"trace_timestamps", "The arrivals of the trace.", [&](Decoder& form) {
                form.Doc("Divides the times of the trace.")
                    .Field("speedup", l.speedup, config::kAboveZero);
                form.Doc("Plays of an agentic trace at a time, one after the other on each lane.")
                    .Field("agentic_lanes", l.agentic_lanes, kInt64);
              }}};
  l.type = static_cast<LoadType>(v.Variants("type", forms));
  for (const std::string_view name : {"agentic_snapshot", "agentic_warmup", "agentic_profile"}) {
    v.Refuse(name, kLater);
  }
}

void StopFields(Decoder& v, StopSection& s) {
  v.Doc("Requests of a synthetic source.").Field("requests", s.requests, kRequests);
  v.Doc("Requests of a synthetic source for each unit of load (concurrency or rate).")
      .Field("requests_per_load_unit", s.requests_per_load_unit, config::kAboveZero);
  v.Doc("Sessions of a synthetic-session source.").Field("sessions", s.sessions, kRequests);
  v.Doc("Sessions of a synthetic-session source for each unit of load.")
      .Field("sessions_per_load_unit", s.sessions_per_load_unit, config::kAboveZero);
  v.Doc("Virtual time after which the replay of a trace ends.")
      .Field("max_virtual_time_seconds", s.max_virtual_time_seconds, config::kAboveZero);
}

std::string_view LoadName(LoadType type) {
  constexpr std::array<std::string_view, 4> kNames = {"concurrency", "poisson", "constant_rate",
                                                      "trace_timestamps"};
  return kNames[static_cast<std::size_t>(type)];
}

bool IsRate(LoadType type) { return type == LoadType::kPoisson || type == LoadType::kConstantRate; }

void CheckSyntheticLoad(Decoder& v, const TrafficSection& t) {
  const bool sessions = t.source.type == SourceType::kSyntheticSession;
  const std::string_view wanted = sessions ? "sessions_per_second" : "requests_per_second";
  const std::string_view other = sessions ? "requests_per_second" : "sessions_per_second";
  if (t.load.type == LoadType::kTraceTimestamps) {
    v.Fail("load.type",
           "synthetic traffic has no timestamps: must be one of concurrency, poisson, "
           "constant_rate, got \"trace_timestamps\"");
  }
  if (!IsRate(t.load.type)) {
    return;
  }
  if (sessions ? t.load.requests_per_second.has_value() : t.load.sessions_per_second.has_value()) {
    v.Fail("load." + std::string(other),
           "the unit of the load rate does not match the source; give " + std::string(wanted));
  }
  if (sessions ? !t.load.sessions_per_second : !t.load.requests_per_second) {
    v.Fail("load." + std::string(wanted),
           "is required by load type " + std::string(LoadName(t.load.type)) + " with this source");
  }
}

void CheckSyntheticStop(Decoder& v, const TrafficSection& t) {
  const bool sessions = t.source.type == SourceType::kSyntheticSession;
  const StopSection& stop = t.stop;
  const std::string allowed =
      sessions ? "sessions or sessions_per_load_unit" : "requests or requests_per_load_unit";
  if (stop.empty()) {
    v.Fail("stop", "synthetic traffic requires a stop condition: " + allowed);
  }
  if (stop.max_virtual_time_seconds) {
    v.Fail("stop.max_virtual_time_seconds", "is for traces only; give " + allowed);
  }
  if (sessions ? stop.requests || stop.requests_per_load_unit
               : stop.sessions || stop.sessions_per_load_unit) {
    v.Fail("stop", sessions ? "sessions end by a count of sessions: give " + allowed
                            : "requests end by a count of requests: give " + allowed);
  }
  if (sessions ? stop.sessions && stop.sessions_per_load_unit
               : stop.requests && stop.requests_per_load_unit) {
    v.Fail("stop", "takes exactly one count condition: " + allowed);
  }
}

void CheckTraceLoad(Decoder& v, const TrafficSection& t) {
  const std::string& format = t.source.format;
  const bool graph = IsOneOf(format, {"agentic_mooncake", "weka"});
  if (IsRate(t.load.type)) {
    v.Fail("load.type", "trace traffic requires trace_timestamps or concurrency, got \"" +
                            std::string(LoadName(t.load.type)) + "\"");
  }
  if (graph && t.load.type != LoadType::kTraceTimestamps) {
    v.Fail("load.type", Named("format", format) + " requires trace_timestamps");
  }
  if (format == "applied_compute_agentic" && t.load.type != LoadType::kConcurrency) {
    v.Fail("load.type", Named("format", format) +
                            " requires concurrency: its traces have no "
                            "first-turn timestamps");
  }
  if (t.load.agentic_lanes && !graph && format != "dynamo") {
    v.Fail("load.agentic_lanes",
           "needs format weka, agentic_mooncake or agentic dynamo, got \"" + format + "\"");
  }
}

void CheckTraceStop(Decoder& v, const TrafficSection& t) {
  const std::string& format = t.source.format;
  StopSection counts = t.stop;
  counts.max_virtual_time_seconds.reset();
  if (!counts.empty()) {
    v.Fail("stop", "trace traffic only accepts max_virtual_time_seconds");
  }
  if (t.stop.max_virtual_time_seconds && IsOneOf(format, {"agentic_mooncake", "weka"})) {
    v.Fail("stop.max_virtual_time_seconds", "is not supported with " + Named("format", format));
  }
}

// max(1, value * load), ties to even.
std::uint64_t CountPerLoadUnit(double value, const LoadSection& load) {
  const double units = IsRate(load.type)
                           ? load.requests_per_second.value_or(load.sessions_per_second.value_or(0))
                           : static_cast<double>(load.concurrency);
  return std::max<std::uint64_t>(1, SaturatingCast<std::uint64_t>(std::nearbyint(value * units)));
}

std::uint64_t RequestCount(const TrafficSection& t) {
  const StopSection& stop = t.stop;
  if (const auto per_unit =
          stop.requests_per_load_unit ? stop.requests_per_load_unit : stop.sessions_per_load_unit) {
    return CountPerLoadUnit(*per_unit, t.load);
  }
  return stop.requests.value_or(stop.sessions.value_or(kDefaultRequests));
}

void CheckCount(Decoder& v, const TrafficSection& t) {
  const bool sessions = t.source.type == SourceType::kSyntheticSession;
  const std::uint64_t turns = sessions ? t.source.session.turns : 1;
  if (RequestCount(t) > workload::kMaxRequests / turns) {
    v.Fail("stop", "asks for more than " + std::to_string(workload::kMaxRequests) + " requests");
  }
}

workload::SyntheticSpec MakeSynthetic(const TrafficSection& t) {
  workload::SyntheticSpec spec;
  spec.input_tokens = static_cast<std::int64_t>(t.source.input_tokens);
  spec.output_tokens = static_cast<std::int64_t>(t.source.output_tokens);
  spec.request_count = static_cast<std::int64_t>(RequestCount(t));
  if (t.source.type == SourceType::kSyntheticSession) {
    const SessionSection& session = t.source.session;
    spec.turns_per_session = static_cast<std::int64_t>(session.turns);
    spec.shared_prefix_ratio = session.shared_prefix_ratio;
    spec.num_prefix_groups = static_cast<std::int64_t>(session.prefix_groups);
    spec.inter_turn_delay_ms = session.inter_turn_delay_ms;
    spec.session_prompts = session.prompts;
  }
  const double rate = t.load.requests_per_second.value_or(t.load.sessions_per_second.value_or(0));
  if (t.load.type == LoadType::kPoisson) {
    spec.request_rate = rate;
    spec.arrival_seed = t.load.seed;
  }
  if (t.load.type == LoadType::kConstantRate) {
    spec.arrival_interval_ms = 1000.0 / rate;
  }
  return spec;
}

std::optional<std::int64_t> Signed(const std::optional<std::uint64_t>& value) {
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

}  // namespace

TrafficSection DefaultTraffic() {
  TrafficSection traffic;
  traffic.stop.requests = kDefaultRequests;
  return traffic;
}

void TrafficFields(Decoder& v, TrafficSection& t) {
  t.stop = {};
  v.Doc("Where the requests come from.").Object("source", [&](Decoder& source) {
    SourceFields(source, t.source);
  });
  v.Doc("How they arrive.").Object("load", [&](Decoder& load) { LoadFields(load, t.load); });
  v.Doc("When the run ends; a trace ends by itself.").OptionalObject("stop", [&](Decoder& stop) {
    StopFields(stop, t.stop);
  });
  if (v.failed()) {
    return;
  }
  if (t.source.type == SourceType::kTrace) {
    CheckTraceLoad(v, t);
    CheckTraceStop(v, t);
  } else {
    CheckSyntheticLoad(v, t);
    CheckSyntheticStop(v, t);
    CheckCount(v, t);
  }
}

workload::WorkloadSpec MakeWorkload(const TrafficSection& t, const std::string& model) {
  workload::WorkloadSpec workload;
  if (t.source.type == SourceType::kTrace) {
    workload::TraceSpec trace;
    trace.files = t.source.paths;
    trace.format = t.source.format;
    trace.block_size = Signed(t.source.block_size);
    trace.agentic_lanes = Signed(t.load.agentic_lanes);
    trace.weka_nested_timestamp_basis = t.source.nested_timestamp_basis;
    if (IsOneOf(trace.format, {"agentic_mooncake", "weka", "dynamo"})) {
      trace.execution_model = model;
    }
    workload.trace = std::move(trace);
  } else {
    workload.synthetic = MakeSynthetic(t);
  }
  if (t.load.type == LoadType::kConcurrency) {
    workload.replay_concurrency = static_cast<std::int64_t>(t.load.concurrency);
  }
  if (t.load.type == LoadType::kTraceTimestamps) {
    workload.arrival_speedup_ratio = t.load.speedup;
  }
  return workload;
}

}  // namespace dynosim::scenario
