// SPDX-License-Identifier: Apache-2.0
#include "report/agentic.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "report/fields.h"
#include "report/json_writer.h"
#include "report/quantiles.h"
#include "report/status_name.h"
#include "scenario/scenario.h"
#include "workload/agentic_graph.h"
#include "workload/agentic_source.h"
#include "workload/request.h"

namespace dynosim::report {
namespace {

using workload::AgenticGraph;
using workload::AgenticSource;

Json ModelsJson(const AgenticGraph& graph) {
  Json::Array models;
  for (const std::string& model : graph.models) {
    models.emplace_back(model);
  }
  return models;
}

Json GraphJson(const AgenticGraph& graph) {
  Json source;
  source.Add("format", graph.source_format);
  if (!graph.source_digest.empty()) {
    source.Add("digest", graph.source_digest);
  }
  Json json;
  json.Add("source", std::move(source));
  json.Add("block_size", graph.block_size);
  json.Add("node_count", std::uint64_t{graph.nodes.size()});
  json.Add("play_count", std::uint64_t{graph.plays.size()});
  json.Add("source_models", ModelsJson(graph));
  return json;
}

Json PlayJson(const AgenticSource& source, std::uint32_t play) {
  const AgenticSource::PlayState& state = source.play(play);
  Json json;
  json.Add("play_id", source.graph().plays[play].id);
  const bool failed = state.failure != workload::kNone;
  json.Add("status", failed ? "failed" : state.settled_ms ? "completed" : "incomplete");
  if (state.causal_terminal_ms) {
    json.Add("causal_terminal_ms", *state.causal_terminal_ms);
  }
  if (state.settled_ms) {
    json.Add("settled_at_ms", *state.settled_ms);
  }
  if (failed) {
    json.Add("failure_request_id", source.graph().nodes[state.failure].id);
    json.Add("failure_status", StatusName(state.failure_status));
  }
  return json;
}

struct RowView {
  const AgenticSource& source;
  std::uint32_t node;

  const workload::AgenticNode& data() const { return source.graph().nodes[node]; }
  const std::string& id(std::uint32_t other) const { return source.graph().nodes[other].id; }
  std::uint32_t lane() const { return source.play(data().play).lane; }
  std::uint32_t root() const { return source.OnlyRoot(data().play); }
  std::uint32_t parent() const { return source.Parent(node); }
};

constexpr FieldTable kFields({
    Field<RowView>{"request_id", [](JsonWriter& o, const RowView& r) { o.String(r.data().id); }},
    {"play_id",
     [](JsonWriter& o, const RowView& r) { o.String(r.source.graph().plays[r.data().play].id); }},
    {"conversation_id",
     [](JsonWriter& o, const RowView& r) { o.String(r.source.SessionName(r.data().session)); }},
    {"lane_id", [](JsonWriter& o, const RowView& r) { o.String(fmt::format("lane:{}", r.lane())); },
     [](const RowView& r) { return r.lane() != workload::kNone; }},
    {"root_id", [](JsonWriter& o, const RowView& r) { o.String(r.id(r.root())); },
     [](const RowView& r) { return r.root() != workload::kNone; }},
    {"parent_id", [](JsonWriter& o, const RowView& r) { o.String(r.id(r.parent())); },
     [](const RowView& r) { return r.parent() != workload::kNone; }},
});

}  // namespace

AgenticSummary SummarizeAgentic(const AgenticSource& source, const scenario::Scenario& scenario) {
  const AgenticGraph& graph = source.graph();
  AgenticSummary out;
  out.total_trajectories = graph.plays.size();
  std::vector<double> latencies_ms;
  Json::Array outcomes;
  for (std::uint32_t p = 0; p < graph.plays.size(); ++p) {
    const AgenticSource::PlayState& state = source.play(p);
    if (state.Completed() && state.first_dispatch_ms) {
      latencies_ms.push_back(std::max(0.0, state.last_terminal_ms - *state.first_dispatch_ms));
    }
    outcomes.push_back(PlayJson(source, p));
  }
  out.completed_trajectories = latencies_ms.size();
  out.trajectory_e2e_latency_ms = Describe(latencies_ms);
  out.details.Add("agentic_graph", GraphJson(graph));
  out.details.Add("agentic_lifecycle_event_count", source.lifecycle_events());
  out.details.Add("agentic_play_outcomes", std::move(outcomes));
  if (!graph.nested_timestamp_basis.empty()) {
    out.details.Add("weka_nested_timestamp_basis", graph.nested_timestamp_basis);
  }
  if (scenario.workload.trace && scenario.workload.trace->execution_model) {
    Json projection;
    projection.Add("policy", "project_to_configured_target");
    projection.Add("source_models", ModelsJson(graph));
    projection.Add("target_model", *scenario.workload.trace->execution_model);
    out.details.Add("agentic_model_projection", std::move(projection));
  }
  return out;
}

void WriteAgenticRow(JsonWriter& out, const AgenticSource& source, std::uint32_t node) {
  kFields.Write(out, {.source = source, .node = node});
}

}  // namespace dynosim::report
