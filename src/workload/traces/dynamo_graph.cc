// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/dynamo_graph.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/result.h"
#include "workload/agentic_builder.h"
#include "workload/agentic_graph.h"
#include "workload/request.h"
#include "workload/traces/dynamo_records.h"

namespace dynosim::workload {
namespace {

constexpr std::uint32_t kMissing = kNone;

double Difference(std::uint64_t later_ms, std::uint64_t earlier_ms) {
  return later_ms >= earlier_ms ? static_cast<double>(later_ms - earlier_ms)
                                : -static_cast<double>(earlier_ms - later_ms);
}

struct Session {
  std::string name;
  std::vector<std::uint32_t> requests{};  // in order of time
  std::optional<std::string> parent{};
  std::uint32_t tool = kMissing;  // that names it as its child
};

struct Edge {
  std::uint32_t source = 0;
  AgenticTrigger trigger = AgenticTrigger::kCompletion;
  AgenticRelation relation = AgenticRelation::kSequence;
  double delay_ms = 0.0;
};

class Lowering {
 public:
  explicit Lowering(DynamoRecords records)
      : records_(std::move(records)), edges_(records_.requests.size()) {}

  Result<void> Connect() {
    DYNO_TRY_VOID(IndexRequests());
    DYNO_TRY_VOID(IndexTools());
    AddSequences();
    for (const Session& session : sessions_) {
      DYNO_TRY_VOID(AddChild(session));
    }
    return {};
  }
  Result<AgenticGraph> Build(const std::string& path, std::uint64_t block_size);

 private:
  const DynamoRequest& At(std::uint32_t request) const { return records_.requests[request]; }

  Result<void> IndexRequests();
  Result<void> IndexTools();
  void AddSequences();
  Result<void> AddChild(const Session& child);
  void AddToolChild(const Session& child, const DynamoTool& tool);
  void AddInferredChild(const Session& child, const Session& parent);
  void AddEdge(std::uint32_t target, Edge edge);
  std::vector<std::string> PlayNames() const;

  DynamoRecords records_;
  std::vector<std::vector<Edge>> edges_;  // by target
  std::vector<Session> sessions_;         // by first request
  FlatMap<std::string, std::uint32_t> session_by_name_;
  FlatMap<std::string, std::uint32_t> request_by_id_;
};

Result<void> Lowering::IndexRequests() {
  for (std::uint32_t r = 0; r < records_.requests.size(); ++r) {
    const DynamoRequest& request = At(r);
    request_by_id_.TryInsert(request.id, r);
    const auto [index, is_new] =
        session_by_name_.TryInsert(*request.session, static_cast<std::uint32_t>(sessions_.size()));
    if (is_new) {
      sessions_.push_back({.name = *request.session});
    }
    Session& session = sessions_[*index];
    session.requests.push_back(r);
    if (request.parent_session && session.parent && *session.parent != *request.parent_session) {
      return FailedError(request.where,
                         fmt::format("session \"{}\" has two values of parent_session_id, \"{}\" "
                                     "and \"{}\"",
                                     session.name, *session.parent, *request.parent_session));
    }
    if (request.parent_session) {
      session.parent = request.parent_session;
    }
  }
  for (const Session& session : sessions_) {
    if (session.parent && !session_by_name_.Contains(*session.parent)) {
      return FailedError(At(session.requests.front()).where,
                         fmt::format("session \"{}\" has the unknown parent session \"{}\"",
                                     session.name, *session.parent));
    }
  }
  return {};
}

Result<void> Lowering::IndexTools() {
  for (std::uint32_t t = 0; t < records_.tools.size(); ++t) {
    const DynamoTool& tool = records_.tools[t];
    for (const std::string* id :
         {&tool.source_request, tool.consumer_request ? &*tool.consumer_request : nullptr}) {
      if (id != nullptr && !request_by_id_.Contains(*id)) {
        return FailedError(tool.where, fmt::format("tool \"{}\" names the unknown request_id "
                                                   "\"{}\"",
                                                   tool.id, *id));
      }
    }
    if (!tool.child_session) {
      continue;
    }
    const std::uint32_t* const child = session_by_name_.Find(*tool.child_session);
    if (child == nullptr) {
      continue;
    }
    if (sessions_[*child].tool != kMissing) {
      return FailedError(tool.where, fmt::format("a second tool event names the child session "
                                                 "\"{}\"",
                                                 *tool.child_session));
    }
    sessions_[*child].tool = t;
  }
  return {};
}

void Lowering::AddEdge(std::uint32_t target, Edge edge) {
  for (const Edge& other : edges_[target]) {
    if (other.source == edge.source && other.trigger == edge.trigger) {
      return;
    }
  }
  edges_[target].push_back(edge);
}

void Lowering::AddSequences() {
  for (const Session& session : sessions_) {
    for (std::size_t i = 1; i < session.requests.size(); ++i) {
      const std::uint32_t before = session.requests[i - 1];
      const std::uint32_t request = session.requests[i];
      AddEdge(request,
              {.source = before, .delay_ms = Difference(At(request).start_ms, At(before).end_ms)});
    }
  }
}

Result<void> Lowering::AddChild(const Session& child) {
  if (child.tool != kMissing) {
    AddToolChild(child, records_.tools[child.tool]);
  } else if (child.parent) {
    AddInferredChild(child, sessions_[*session_by_name_.Find(*child.parent)]);
  }
  return {};
}

void Lowering::AddToolChild(const Session& child, const DynamoTool& tool) {
  const std::uint32_t first = child.requests.front();
  const std::uint32_t source = *request_by_id_.Find(tool.source_request);
  AddEdge(first, {.source = source,
                  .trigger = AgenticTrigger::kDispatch,
                  .relation = AgenticRelation::kSpawn,
                  .delay_ms = Difference(At(first).start_ms, At(source).start_ms)});
  if (!tool.consumer_request) {
    return;
  }
  const std::uint32_t consumer = *request_by_id_.Find(*tool.consumer_request);
  const std::uint64_t start_ms = At(consumer).start_ms;
  const auto end_key = [&](std::uint32_t r) {
    return std::tie(At(r).end_ms, At(r).start_ms, At(r).id);
  };
  std::uint32_t last = kMissing;
  for (const std::uint32_t r : child.requests) {
    if (At(r).end_ms <= start_ms && (last == kMissing || end_key(r) > end_key(last))) {
      last = r;
    }
  }
  if (last != kMissing) {
    AddEdge(consumer, {.source = last,
                       .relation = AgenticRelation::kJoin,
                       .delay_ms = Difference(start_ms, At(last).end_ms)});
  }
}

void Lowering::AddInferredChild(const Session& child, const Session& parent) {
  const std::uint32_t first = child.requests.front();
  const std::uint32_t last = child.requests.back();
  std::uint32_t source = kMissing;
  for (const std::uint32_t r : parent.requests) {
    if (At(r).start_ms <= At(first).start_ms) {
      source = r;
    }
  }
  if (source != kMissing) {
    AddEdge(first, {.source = source,
                    .trigger = AgenticTrigger::kDispatch,
                    .relation = AgenticRelation::kSpawn,
                    .delay_ms = Difference(At(first).start_ms, At(source).start_ms)});
  }
  for (const std::uint32_t r : parent.requests) {
    if (At(r).start_ms >= At(last).end_ms) {
      AddEdge(r, {.source = last,
                  .relation = AgenticRelation::kJoin,
                  .delay_ms = Difference(At(r).start_ms, At(last).end_ms)});
      return;
    }
  }
}

// Plays are the connected parts of the graph, named after their earliest root.
std::vector<std::string> Lowering::PlayNames() const {
  const auto count = static_cast<std::uint32_t>(edges_.size());
  std::vector<std::uint32_t> leader(count);
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&leader](std::uint32_t r) {
    while (leader[r] != r) {
      leader[r] = leader[leader[r]];
      r = leader[r];
    }
    return r;
  };
  for (std::uint32_t r = 0; r < count; ++r) {
    for (const Edge& edge : edges_[r]) {
      leader[find(r)] = find(edge.source);
    }
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(At(a).start_ms, At(a).id) < std::tie(At(b).start_ms, At(b).id);
  };
  std::vector<std::uint32_t> root(count, kMissing);
  for (std::uint32_t r = 0; r < count; ++r) {
    std::uint32_t& best = root[find(r)];
    if (edges_[r].empty() && (best == kMissing || earlier(r, best))) {
      best = r;
    }
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    const std::uint32_t of_play = root[find(r)];
    names.push_back("dynamo-play:" + At(of_play == kMissing ? find(r) : of_play).id);
  }
  return names;
}

Result<AgenticGraph> Lowering::Build(const std::string& path, std::uint64_t block_size) {
  const std::vector<std::string> plays = PlayNames();
  std::vector<std::string> ids;
  for (const DynamoRequest& request : records_.requests) {
    ids.push_back(request.id);
  }
  const std::uint64_t first_ms = records_.requests.front().start_ms;
  AgenticBuilder builder(block_size);
  for (std::uint32_t r = 0; r < records_.requests.size(); ++r) {
    DynamoRequest& request = records_.requests[r];
    // Traces are checked as the list of requests in order of time behind a header line.
    AgenticRequest out{.where = fmt::format("{} (line {} in order of time)", request.where, r + 2)};
    out.request_id = request.id;
    out.play_id = plays[r];
    out.session_id = *request.session;
    out.model = request.model.value_or("unknown");
    out.input_tokens = request.input_tokens;
    out.output_tokens = request.output_tokens;
    out.hash_ids = std::move(request.hash_ids);
    out.not_before_ms = edges_[r].empty() ? Difference(request.start_ms, first_ms) : 0.0;
    for (const Edge& edge : edges_[r]) {
      out.dependencies.push_back({.request_id = ids[edge.source],
                                  .trigger = edge.trigger,
                                  .relation = edge.relation,
                                  .delay_ms = edge.delay_ms});
    }
    DYNO_TRY_VOID(builder.Add(std::move(out)));
  }
  DYNO_TRY(AgenticGraph graph, builder.Finish(path));
  graph.source_format = "dynamo.request.trace.v1";
  graph.source_digest =
      fmt::format("requests:{};tools:{}", records_.requests.size(), records_.tool_records);
  return graph;
}

}  // namespace

Result<AgenticGraph> MakeDynamoGraph(const std::string& path, std::uint64_t block_size,
                                     DynamoRecords records) {
  Lowering lowering(std::move(records));
  DYNO_TRY_VOID(lowering.Connect());
  return lowering.Build(path, block_size);
}

}  // namespace dynosim::workload
