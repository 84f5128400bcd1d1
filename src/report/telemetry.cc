// SPDX-License-Identifier: Apache-2.0
// Samples are tables of fields, as rows are.
#include "report/telemetry.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/result.h"
#include "report/fields.h"
#include "report/json_writer.h"
#include "sim/outcome.h"

namespace dynosim::report {
namespace {

using Sample = sim::TelemetrySample;
using Scheduler = sim::SchedulerSample;
using Interval = sim::IntervalSample;

std::string_view KindName(Sample::Kind kind) {
  switch (kind) {
    case Sample::Kind::kBaseline:
      return "baseline";
    case Sample::Kind::kPeriodic:
      return "periodic";
    case Sample::Kind::kFinal:
      return "final";
  }
  return "";
}

double Usage(std::uint64_t blocks, const Scheduler& scheduler) {
  return scheduler.total_blocks == 0
             ? 0.0
             : static_cast<double>(blocks) / static_cast<double>(scheduler.total_blocks);
}

constexpr FieldTable kTrafficFields({
    Field<Sample>{"duration_s", [](JsonWriter& o, const Sample& s) { o.Number(s.duration_s); }},
    {"arriving_requests", [](JsonWriter& o, const Sample& s) { o.Integer(s.arriving_requests); }},
    {"completed_requests", [](JsonWriter& o, const Sample& s) { o.Integer(s.completed_requests); }},
    {"avg_isl", [](JsonWriter& o, const Sample& s) { o.Number(s.avg_isl); }},
    {"avg_osl", [](JsonWriter& o, const Sample& s) { o.Number(s.avg_osl); }},
    {"avg_ttft_ms", [](JsonWriter& o, const Sample& s) { o.Number(s.avg_ttft_ms); }},
    {"avg_itl_ms", [](JsonWriter& o, const Sample& s) { o.Number(s.avg_itl_ms); }},
    {"ttft_count", [](JsonWriter& o, const Sample& s) { o.Integer(s.ttft_count); }},
    {"itl_count", [](JsonWriter& o, const Sample& s) { o.Integer(s.itl_count); }},
    {"avg_router_kv_hit_rate",
     [](JsonWriter& o, const Sample& s) { o.Number(s.avg_router_kv_hit_rate); }},
    {"router_kv_hit_rate_count",
     [](JsonWriter& o, const Sample& s) { o.Integer(s.router_kv_hit_rate_count); }},
    {"avg_accept_length",
     [](JsonWriter& o, const Sample& s) { o.NumberOrNull(s.avg_accept_length); }},
    {"accept_length_forward_count",
     [](JsonWriter& o, const Sample& s) { o.Integer(s.accept_length_forward_count); }},
});

constexpr FieldTable kSchedulerFields({
    Field<Scheduler>{"worker_id", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.worker); }},
    {"dp_rank", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.dp_rank); }},
    {"active_blocks", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.active_blocks); }},
    {"inactive_blocks", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.inactive_blocks); }},
    {"total_blocks", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.total_blocks); }},
    {"active_cache_usage",
     [](JsonWriter& o, const Scheduler& s) { o.Number(Usage(s.active_blocks, s)); }},
    {"physical_cache_usage",
     [](JsonWriter& o, const Scheduler& s) {
       o.Number(Usage(s.active_blocks + s.inactive_blocks, s));
     }},
    {"running_requests", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.running_requests); }},
    {"waiting_requests", [](JsonWriter& o, const Scheduler& s) { o.Integer(s.waiting_requests); }},
});

constexpr FieldTable kIntervalFields({
    Field<Interval>{"cache_hit_tokens",
                    [](JsonWriter& o, const Interval& i) { o.Integer(i.cache_hit_tokens); }},
    {"cache_total_tokens",
     [](JsonWriter& o, const Interval& i) { o.Integer(i.cache_total_tokens); }},
    {"preemptions", [](JsonWriter& o, const Interval& i) { o.Integer(i.preemptions); }},
});

void WriteSchedulers(JsonWriter& out, const std::vector<Scheduler>& schedulers) {
  out.BeginArray();
  for (const Scheduler& scheduler : schedulers) {
    kSchedulerFields.Write(out, scheduler);
  }
  out.EndArray();
}

void WriteIds(JsonWriter& out, const std::vector<std::uint32_t>& ids) {
  out.BeginArray();
  for (const std::uint32_t id : ids) {
    out.Integer(id);
  }
  out.EndArray();
}

constexpr FieldTable kSampleFields({
    Field<Sample>{"sample_ordinal", [](JsonWriter& o, const Sample& s) { o.Integer(s.ordinal); }},
    {"kind", [](JsonWriter& o, const Sample& s) { o.String(KindName(s.kind)); }},
    {"interval_start_ms", [](JsonWriter& o, const Sample& s) { o.Number(s.interval_start_ms); }},
    {"sampled_at_ms", [](JsonWriter& o, const Sample& s) { o.Number(s.sampled_at_ms); }},
    {"traffic", [](JsonWriter& o, const Sample& s) { kTrafficFields.Write(o, s); }},
    {"prefill_scheduler_metrics",
     [](JsonWriter& o, const Sample& s) { WriteSchedulers(o, s.prefill_schedulers); }},
    {"decode_scheduler_metrics",
     [](JsonWriter& o, const Sample& s) { WriteSchedulers(o, s.decode_schedulers); }},
    {"prefill_interval_metrics",
     [](JsonWriter& o, const Sample& s) { kIntervalFields.Write(o, s.prefill_interval); }},
    {"decode_interval_metrics",
     [](JsonWriter& o, const Sample& s) { kIntervalFields.Write(o, s.decode_interval); }},
    {"router_pending_prefill_requests",
     [](JsonWriter& o, const Sample& s) { o.Integer(s.router_pending_prefill_requests); }},
    {"router_pending_decode_requests",
     [](JsonWriter& o, const Sample& s) { o.Integer(s.router_pending_decode_requests); }},
    {"active_prefill_ids",
     [](JsonWriter& o, const Sample& s) { WriteIds(o, s.active_prefill_ids); }},
    {"active_decode_ids", [](JsonWriter& o, const Sample& s) { WriteIds(o, s.active_decode_ids); }},
    {"starting_prefill_ids",
     [](JsonWriter& o, const Sample& s) { WriteIds(o, s.starting_prefill_ids); }},
    {"starting_decode_ids",
     [](JsonWriter& o, const Sample& s) { WriteIds(o, s.starting_decode_ids); }},
    {"draining_prefill_ids",
     [](JsonWriter& o, const Sample& s) { WriteIds(o, s.draining_prefill_ids); }},
    {"draining_decode_ids",
     [](JsonWriter& o, const Sample& s) { WriteIds(o, s.draining_decode_ids); }},
});

}  // namespace

void WriteSample(JsonWriter& out, const Sample& sample) { kSampleFields.Write(out, sample); }

std::string SampleText(const Sample& sample) {
  std::string text;
  JsonWriter out({}, [&text](std::string_view part) { text += part; });
  WriteSample(out, sample);
  out.Flush();
  return text;
}

Result<void> WriteTelemetryJsonl(const std::string& path, const sim::Outcome& outcome) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  JsonWriter out({}, [&file](std::string_view text) { file.Append(text); });
  for (const Sample& sample : outcome.telemetry) {
    WriteSample(out, sample);
    out.EndLine();
  }
  out.Flush();
  return file.Commit();
}

}  // namespace dynosim::report
