// SPDX-License-Identifier: Apache-2.0
// Rows are tables of fields. A row looks at its record and, where details were captured, at them.
#include "report/per_request.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/atomic_file.h"
#include "base/result.h"
#include "report/agentic.h"
#include "report/fields.h"
#include "report/json_writer.h"
#include "report/latency.h"
#include "report/status_name.h"
#include "report/time_parts.h"
#include "router/router.h"
#include "sim/outcome.h"
#include "workload/agentic_graph.h"
#include "workload/agentic_source.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

struct RowView {
  const sim::RequestRecord& record;
  const sim::RequestDetail& detail;
  const SessionNames& session_names;
  const workload::AgenticSource* agentic = nullptr;  // of a run that replayed a graph

  const workload::AgenticNode& node() const { return agentic->graph().nodes[record.id]; }
  bool has_tokens() const { return record.output_tokens > 0; }
};

std::string_view PoolName(sim::Pool pool) {
  switch (pool) {
    case sim::Pool::kAggregated:
      return "agg";
    case sim::Pool::kPrefill:
      return "prefill";
    case sim::Pool::kDecode:
      return "decode";
  }
  return "";
}

std::optional<std::uint64_t> Widen(const std::optional<std::uint32_t>& value) {
  return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

std::optional<std::uint64_t> RegretBlocks(const sim::RoutingRecord& routing) {
  if (!routing.selected_overlap_blocks || !routing.best_available_overlap_blocks) {
    return std::nullopt;
  }
  const std::uint64_t best = *routing.best_available_overlap_blocks;
  const std::uint64_t selected = *routing.selected_overlap_blocks;
  return best > selected ? best - selected : 0;
}

using Candidate = router::Candidate;
constexpr FieldTable kCandidateFields({
    Field<Candidate>{"logical_worker_id",
                     [](JsonWriter& o, const Candidate& c) { o.Integer(c.target.worker); }},
    {"dp_rank", [](JsonWriter& o, const Candidate& c) { o.Integer(c.target.rank); }},
    {"overlap_blocks", [](JsonWriter& o, const Candidate& c) { o.Integer(c.overlap_blocks); }},
    {"active_prefill_tokens",
     [](JsonWriter& o, const Candidate& c) { o.Integer(c.active_prefill_tokens); }},
    {"active_blocks", [](JsonWriter& o, const Candidate& c) { o.Integer(c.active_blocks); }},
    {"additional_blocks",
     [](JsonWriter& o, const Candidate& c) { o.Integer(c.additional_blocks); }},
    {"active_requests", [](JsonWriter& o, const Candidate& c) { o.Integer(c.active_requests); }},
    {"overlap_credit", [](JsonWriter& o, const Candidate& c) { o.Number(c.overlap_credit); }},
    {"prefill_cost", [](JsonWriter& o, const Candidate& c) { o.Number(c.prefill_cost); }},
    {"decode_cost", [](JsonWriter& o, const Candidate& c) { o.Number(c.decode_cost); }},
    {"request_cost", [](JsonWriter& o, const Candidate& c) { o.Number(c.request_cost); }},
    {"cost", [](JsonWriter& o, const Candidate& c) { o.Number(c.cost); }},
});

void WriteCandidates(JsonWriter& out, const sim::RoutingRecord& routing) {
  out.BeginArray();
  for (const Candidate& candidate : routing.candidates) {
    kCandidateFields.Write(out, candidate);
  }
  out.EndArray();
}

using Routing = sim::RoutingRecord;
constexpr FieldTable kRoutingFields({
    Field<Routing>{"pool", [](JsonWriter& o, const Routing& r) { o.String(PoolName(r.pool)); }},
    {"outcome",
     [](JsonWriter& o, const Routing& r) { o.String(r.queued ? "queued" : "immediate"); }},
    {"queue_entered_at_ms",
     [](JsonWriter& o, const Routing& r) {
       o.NumberOrNull(r.queued ? std::optional(r.queue_entered_at_ms) : std::nullopt);
     }},
    {"released_at_ms",
     [](JsonWriter& o, const Routing& r) {
       o.NumberOrNull(r.queued ? std::optional(r.released_at_ms) : std::nullopt);
     }},
    {"queue_wait_ms",
     [](JsonWriter& o, const Routing& r) {
       o.Number(r.queued ? ElapsedMs(r.queue_entered_at_ms, r.released_at_ms) : 0.0);
     }},
    {"logical_worker_id", [](JsonWriter& o, const Routing& r) { o.Integer(r.worker); }},
    {"scheduler_id", [](JsonWriter& o, const Routing& r) { o.Integer(r.scheduler); }},
    {"dp_rank", [](JsonWriter& o, const Routing& r) { o.Integer(r.dp_rank); }},
    {"reported_overlap_tokens",
     [](JsonWriter& o, const Routing& r) { o.Integer(r.reported_overlap_tokens); }},
    {"selected_overlap_blocks",
     [](JsonWriter& o, const Routing& r) { o.IntegerOrNull(r.selected_overlap_blocks); }},
    {"best_available_overlap_blocks",
     [](JsonWriter& o, const Routing& r) { o.IntegerOrNull(r.best_available_overlap_blocks); }},
    {"overlap_regret_blocks",
     [](JsonWriter& o, const Routing& r) { o.IntegerOrNull(RegretBlocks(r)); }},
    {"placement_replica_id", [](JsonWriter& o, const Routing&) { o.Null(); }},
    {"candidates", WriteCandidates, [](const Routing& r) { return !r.candidates.empty(); }},
});

struct AdmissionView {
  const sim::AdmissionRecord& admission;
  std::uint64_t ordinal;
  std::uint64_t pool_ordinal;
};
constexpr FieldTable kAdmissionFields({
    Field<AdmissionView>{"admission_ordinal",
                         [](JsonWriter& o, const AdmissionView& a) { o.Integer(a.ordinal); }},
    {"pool_admission_ordinal",
     [](JsonWriter& o, const AdmissionView& a) { o.Integer(a.pool_ordinal); }},
    {"pool", [](JsonWriter& o, const AdmissionView& a) { o.String(PoolName(a.admission.pool)); }},
    {"at_ms", [](JsonWriter& o, const AdmissionView& a) { o.Number(a.admission.at_ms); }},
    {"reused_input_tokens",
     [](JsonWriter& o, const AdmissionView& a) { o.Integer(a.admission.reused_tokens); }},
    {"is_readmission", [](JsonWriter& o, const AdmissionView& a) { o.Bool(a.pool_ordinal > 0); }},
});

void WriteRouting(JsonWriter& out, const RowView& row) {
  out.BeginArray();
  for (const sim::RoutingRecord& routing : row.detail.routing) {
    kRoutingFields.Write(out, routing);
  }
  out.EndArray();
}

void WriteAdmissions(JsonWriter& out, const RowView& row) {
  std::array<std::uint64_t, 3> of_pool{};
  std::uint64_t ordinal = 0;
  out.BeginArray();
  for (const sim::AdmissionRecord& admission : row.detail.admissions) {
    kAdmissionFields.Write(out,
                           {.admission = admission,
                            .ordinal = ordinal++,
                            .pool_ordinal = of_pool[static_cast<std::size_t>(admission.pool)]++});
  }
  out.EndArray();
}

void WriteSession(JsonWriter& out, const RowView& row) {
  if (row.record.session == workload::kNone) {
    out.Null();
  } else {
    out.String(row.session_names(row.record.session));
  }
}

void WriteTurn(JsonWriter& out, const RowView& row) {
  if (row.record.turn == workload::kNone) {
    out.Null();
  } else {
    out.Integer(row.record.turn);
  }
}

constexpr FieldTable kTimePartFields({
    Field<TimeParts>{"queue", [](JsonWriter& o, const TimeParts& p) { o.Number(p.queue_ms); }},
    {"prefill", [](JsonWriter& o, const TimeParts& p) { o.Number(p.prefill_ms); }},
    {"transfer", [](JsonWriter& o, const TimeParts& p) { o.Number(p.transfer_ms); }},
    {"first_decode_wait",
     [](JsonWriter& o, const TimeParts& p) { o.Number(p.first_decode_wait_ms); }},
    {"decode", [](JsonWriter& o, const TimeParts& p) { o.Number(p.decode_ms); }},
});

void WriteTimeParts(JsonWriter& out, const std::optional<TimeParts>& parts) {
  if (parts) {
    kTimePartFields.Write(out, *parts);
  } else {
    out.Null();
  }
}

void WriteTokenTime(JsonWriter& out, const RowView& row, double at_ms) {
  out.NumberOrNull(row.has_tokens() ? std::optional(at_ms) : std::nullopt);
}

bool IsAgentic(const RowView& row) { return row.agentic != nullptr; }

constexpr FieldTable kRowFields({
    Field<RowView>{"request_id", [](JsonWriter& o, const RowView& r) { o.String(r.node().id); },
                   IsAgentic},
    {"play_id",
     [](JsonWriter& o, const RowView& r) { o.String(r.agentic->graph().plays[r.node().play].id); },
     IsAgentic},
    {"session_id", WriteSession},
    {"turn_index", WriteTurn},
    {"agentic",
     [](JsonWriter& o, const RowView& r) { WriteAgenticRow(o, *r.agentic, r.record.id); },
     IsAgentic},
    {"uuid", [](JsonWriter& o, const RowView& r) { o.String(RequestUuid(r.record.id)); }},
    {"arrival_time_ms", [](JsonWriter& o, const RowView& r) { o.Number(r.record.arrival_ms); }},
    {"dispatched_at_ms",
     [](JsonWriter& o, const RowView& r) {
       o.NumberOrNull(IsAgentic(r) ? std::optional(r.record.dispatched_ms) : std::nullopt);
     }},
    {"first_admit_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.record.first_admit_ms); }},
    {"terminal_time_ms", [](JsonWriter& o, const RowView& r) { o.Number(r.record.terminal_ms); }},
    {"first_token_ms",
     [](JsonWriter& o, const RowView& r) { WriteTokenTime(o, r, r.record.first_token_ms); }},
    {"last_token_ms",
     [](JsonWriter& o, const RowView& r) { WriteTokenTime(o, r, r.record.last_token_ms); }},
    {"ttft_ms", [](JsonWriter& o, const RowView& r) { o.NumberOrNull(TtftMs(r.record)); }},
    {"ttst_ms", [](JsonWriter& o, const RowView& r) { o.NumberOrNull(TtstMs(r.record)); }},
    {"e2e_latency_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(EndToEndMs(r.record)); }},
    {"itl_ms", [](JsonWriter& o, const RowView& r) { o.NumberOrNull(TpotMs(r.record)); }},
    {"input_length", [](JsonWriter& o, const RowView& r) { o.Integer(r.record.prompt_tokens); }},
    {"requested_output_length",
     [](JsonWriter& o, const RowView& r) { o.Integer(r.record.requested_output_tokens); }},
    {"output_length", [](JsonWriter& o, const RowView& r) { o.Integer(r.record.output_tokens); }},
    {"reused_input_tokens",
     [](JsonWriter& o, const RowView& r) { o.Integer(r.record.reused_tokens_prefill_max); }},
    {"prefill_worker_idx",
     [](JsonWriter& o, const RowView& r) { o.IntegerOrNull(Widen(r.detail.prefill_scheduler)); }},
    {"decode_worker_idx",
     [](JsonWriter& o, const RowView& r) { o.IntegerOrNull(Widen(r.record.decode_scheduler)); }},
    {"prefill_admit_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.prefill_admit_ms); }},
    {"source_held_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.source_held_ms); }},
    {"destination_reserved_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.destination_reserved_ms); }},
    {"destination_activated_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.destination_activated_ms); }},
    {"decode_admit_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.decode_admit_ms); }},
    {"source_released_ms",
     [](JsonWriter& o, const RowView& r) { o.NumberOrNull(r.detail.source_released_ms); }},
    {"decode_reused_input_tokens",
     [](JsonWriter& o, const RowView& r) { o.IntegerOrNull(r.detail.decode_reused_tokens); }},
    {"prefill_route_overlap_tokens",
     [](JsonWriter& o, const RowView& r) {
       o.IntegerOrNull(r.detail.prefill_route_overlap_tokens);
     }},
    {"decode_route_overlap_tokens",
     [](JsonWriter& o, const RowView& r) {
       o.IntegerOrNull(r.detail.decode_route_overlap_tokens);
     }},
    {"routing_history", WriteRouting},
    {"admission_history", WriteAdmissions},
    {"admission_count", [](JsonWriter& o, const RowView& r) { o.Integer(r.record.admissions); }},
    {"readmission_count",
     [](JsonWriter& o, const RowView& r) { o.Integer(r.record.readmissions); }},
    // Filled by pressure evidence, which is not captured.
    {"pressure_record_ordinals",
     [](JsonWriter& o, const RowView&) {
       o.BeginArray();
       o.EndArray();
     }},
    {"terminal_status",
     [](JsonWriter& o, const RowView& r) { o.String(StatusName(r.record.status)); }},
    {"ttft_parts_ms",
     [](JsonWriter& o, const RowView& r) { WriteTimeParts(o, TtftParts(r.record, r.detail)); }},
    {"e2e_parts_ms",
     [](JsonWriter& o, const RowView& r) { WriteTimeParts(o, EndToEndParts(r.record, r.detail)); }},
    {"rejection_reason",
     [](JsonWriter& o, const RowView& r) { o.String(r.detail.rejection_reason); },
     [](const RowView& r) { return r.record.status == workload::TerminalStatus::kRejected; }, true},
});

}  // namespace

std::uint64_t RowCount(const sim::Outcome& outcome) {
  std::uint64_t rows = 0;
  for (const sim::RequestRecord& record : outcome.records) {
    rows += record.terminal ? 1U : 0U;
  }
  return rows;
}

std::string RequestUuid(std::uint32_t id) {
  return fmt::format("00000000-0000-0000-0000-{:012x}", std::uint64_t{id} + 1);
}

void WriteRow(JsonWriter& out, const sim::Outcome& outcome, std::size_t index,
              const SessionNames& session_names, const workload::AgenticSource* agentic) {
  static const sim::RequestDetail no_detail;
  kRowFields.Write(out, {.record = outcome.records[index],
                         .detail = outcome.details.empty() ? no_detail : outcome.details[index],
                         .session_names = session_names,
                         .agentic = agentic});
}

Result<void> WriteRequestsJsonl(const std::string& path, const sim::Outcome& outcome,
                                const SessionNames& session_names,
                                const workload::AgenticSource* agentic) {
  DYNO_TRY(AtomicFile file, AtomicFile::Create(path));
  JsonWriter out({}, [&file](std::string_view text) { file.Append(text); });
  for (std::size_t i = 0; i < outcome.records.size(); ++i) {
    if (outcome.records[i].terminal) {
      WriteRow(out, outcome, i, session_names, agentic);
      out.EndLine();
    }
  }
  out.Flush();
  return file.Commit();
}

}  // namespace dynosim::report
