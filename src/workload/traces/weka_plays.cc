// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/weka_plays.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/blake3.h"
#include "base/numeric.h"
#include "base/result.h"
#include "workload/agentic_builder.h"
#include "workload/agentic_graph.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/traces/weka_objects.h"
#include "workload/traces/weka_streams.h"

namespace dynosim::workload {
namespace {

double ToMs(double seconds) { return RoundHalfAway(seconds * 1e9) / 1e6; }

// "weka:" and 16 digits of the digest of the source's name.
std::string IdPrefix(const std::string& source_name) {
  constexpr std::size_t kBytes = 8;
  std::string prefix = "weka:";
  const auto digest = ShortBlake3(source_name);
  for (const std::uint8_t byte : std::span(digest).first(kBytes)) {
    prefix += fmt::format("{:02x}", byte);
  }
  return prefix;
}

// A request with its place in the play. Times are seconds.
struct Node {
  const WekaRequest* request = nullptr;
  std::size_t entry = 0;  // of the object
  std::uint32_t stream = kNone;
};

struct Edge {
  std::uint32_t source = kNone;
  AgenticTrigger trigger = AgenticTrigger::kCompletion;
  AgenticRelation relation = AgenticRelation::kSequence;
  double delay_s = 0.0;
};

// A stream of nodes. Scopes are the outer list and each subagent.
struct Stream {
  std::vector<std::uint32_t> nodes{};
  std::uint32_t fork_source = kNone;
  std::string session{};
};

struct Scope {
  std::uint32_t first_stream = 0;
  std::uint32_t streams = 0;
};

class Play {
 public:
  Play(const WekaObject& object, bool relative_times)
      : object_(object), relative_times_(relative_times), prefix_(IdPrefix(object.name)) {}

  Result<void> Lower();
  std::vector<AgenticRequest> Requests(std::uint64_t ordinal, WekaBlockIds& block_ids) const;

 private:
  double Time(std::uint32_t node) const { return timing_[node].t; }
  double End(std::uint32_t node) const { return timing_[node].end; }

  void AddNode(const WekaRequest& request, std::size_t entry, std::string id, double t);
  Scope AddScope(std::uint32_t first_node, const std::string& session);
  Result<Scope> AddSubagent(const WekaSubagent& subagent, std::size_t entry);
  std::uint32_t ParentOf(std::size_t entry) const;
  void AddEdge(std::uint32_t target, Edge edge);
  void AddStreamEdges(const Stream& stream);
  void AddForkEdge(std::uint32_t target, std::uint32_t source);
  void AddBarriers(const Scope& scope);
  void AddBarriersFor(std::uint32_t target, std::span<const std::uint32_t> members);
  void AddJoins(const WekaSubagent& subagent, std::size_t entry, const Scope& scope);
  void TieLooseStreams();

  const WekaObject& object_;
  bool relative_times_;
  std::string prefix_;
  std::vector<Node> nodes_;
  std::vector<WekaStreamRequest> timing_;  // by node
  std::vector<std::vector<Edge>> edges_;   // by target
  std::vector<Stream> streams_;
  std::uint32_t outer_nodes_ = 0;  // come first
};

void Play::AddNode(const WekaRequest& request, std::size_t entry, std::string id, double t) {
  nodes_.push_back({.request = &request, .entry = entry});
  timing_.push_back({.id = std::move(id),
                     .t = t,
                     .end = t + request.api_time.value_or(0.0),
                     .model = request.model,
                     .output_tokens = request.output_tokens,
                     .hashes = object_.Hashes(request)});
}

// Splits the nodes from `first_node` on into streams.
Scope Play::AddScope(std::uint32_t first_node, const std::string& session) {
  const std::vector<WekaStream> split = SplitWekaStreams(std::span(timing_).subspan(first_node));
  const Scope scope{.first_stream = static_cast<std::uint32_t>(streams_.size()),
                    .streams = static_cast<std::uint32_t>(split.size())};
  for (std::size_t s = 0; s < split.size(); ++s) {
    Stream stream{.session = s == 0 ? session : fmt::format("{}:worker:{}", session, s - 1)};
    for (const std::uint32_t r : split[s].requests) {
      stream.nodes.push_back(first_node + r);
      nodes_[first_node + r].stream = static_cast<std::uint32_t>(streams_.size());
    }
    if (split[s].fork_source != kNone) {
      stream.fork_source = first_node + split[s].fork_source;
    }
    streams_.push_back(std::move(stream));
  }
  return scope;
}

// The request of the outer list that is the nearest before the entry.
std::uint32_t Play::ParentOf(std::size_t entry) const {
  std::uint32_t parent = kNone;
  for (std::uint32_t n = 0; n < outer_nodes_ && nodes_[n].entry < entry; ++n) {
    parent = n;
  }
  return parent;
}

Result<Scope> Play::AddSubagent(const WekaSubagent& subagent, std::size_t entry) {
  const auto first_node = static_cast<std::uint32_t>(nodes_.size());
  for (std::size_t j = 0; j < subagent.requests.size(); ++j) {
    const WekaRequest& request = subagent.requests[j];
    double t = request.t;
    if (relative_times_) {
      t += subagent.t;
    } else if (t < subagent.t - kWekaTolerance) {
      return FailedError(object_.where,
                         fmt::format("{}: request {} of the subagent {} is at {} s, before the "
                                     "subagent at {} s; its times seem to be relative "
                                     "(weka_nested_timestamp_basis)",
                                     object_.name, j, subagent.agent_id, t, subagent.t));
    } else {
      t = std::max(t, subagent.t);
    }
    AddNode(request, entry, fmt::format("{}:request:outer:{}:inner:{}", prefix_, entry, j), t);
  }
  const Scope scope = AddScope(
      first_node, fmt::format("{}:session:subagent:{}:{}", prefix_, entry, subagent.agent_id));
  if (scope.streams > 0) {
    streams_[scope.first_stream].fork_source = ParentOf(entry);
  }
  return scope;
}

void Play::AddEdge(std::uint32_t target, Edge edge) {
  for (const Edge& other : edges_[target]) {
    if (std::tie(other.source, other.trigger, other.relation) ==
        std::tie(edge.source, edge.trigger, edge.relation)) {
      return;
    }
  }
  edges_[target].push_back(edge);
}

void Play::AddForkEdge(std::uint32_t target, std::uint32_t source) {
  const bool overlaps = Time(target) < End(source);
  const double since = overlaps ? Time(source) : End(source);
  AddEdge(target, {.source = source,
                   .trigger = overlaps ? AgenticTrigger::kDispatch : AgenticTrigger::kCompletion,
                   .relation = AgenticRelation::kSpawn,
                   .delay_s = std::max(0.0, Time(target) - since)});
}

void Play::AddStreamEdges(const Stream& stream) {
  for (std::size_t i = 1; i < stream.nodes.size(); ++i) {
    const std::uint32_t before = stream.nodes[i - 1];
    const std::uint32_t node = stream.nodes[i];
    AddEdge(node, {.source = before, .delay_s = std::max(0.0, Time(node) - End(before))});
  }
  if (stream.fork_source != kNone) {
    AddForkEdge(stream.nodes.front(), stream.fork_source);
  }
}

// Members that another one began strictly after are left out.
void Play::AddBarriersFor(std::uint32_t target, std::span<const std::uint32_t> members) {
  double latest = -std::numeric_limits<double>::infinity();
  for (const std::uint32_t member : members) {
    latest = std::max(latest, Time(member));
  }
  for (const std::uint32_t member : members) {
    if (latest <= End(member)) {
      AddEdge(target, {.source = member, .relation = AgenticRelation::kReplayBarrier});
    }
  }
}

// For every request, the last one of every other stream of its scope that had ended before.
void Play::AddBarriers(const Scope& scope) {
  if (scope.streams < 2) {
    return;
  }
  const std::span<const Stream> streams =
      std::span(streams_).subspan(scope.first_stream, scope.streams);
  std::vector<std::uint32_t> targets;
  for (const Stream& stream : streams) {
    targets.insert(targets.end(), stream.nodes.begin(), stream.nodes.end());
  }
  std::sort(targets.begin(), targets.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::pair(Time(a), a) < std::pair(Time(b), b);
  });
  const auto key = [this](std::uint32_t n) {
    return std::tie(timing_[n].end, timing_[n].t, timing_[n].id);
  };
  // By stream: what began before the target, of which the last that has ended, and the rest.
  struct Cursor {
    std::size_t begun = 0;
    std::uint32_t last_ended = kNone;
    std::vector<std::uint32_t> running{};
  };
  std::vector<Cursor> cursors(streams.size());
  std::vector<std::uint32_t> members;
  for (const std::uint32_t target : targets) {
    members.clear();
    for (std::size_t s = 0; s < streams.size(); ++s) {
      Cursor& cursor = cursors[s];
      const std::vector<std::uint32_t>& nodes = streams[s].nodes;
      for (; cursor.begun < nodes.size() && Time(nodes[cursor.begun]) < Time(target);
           ++cursor.begun) {
        cursor.running.push_back(nodes[cursor.begun]);
      }
      std::erase_if(cursor.running, [&](std::uint32_t n) {
        const bool ended = End(n) <= Time(target) + kWekaTolerance;
        if (ended && (cursor.last_ended == kNone || key(n) > key(cursor.last_ended))) {
          cursor.last_ended = n;
        }
        return ended;
      });
      if (scope.first_stream + s != nodes_[target].stream && cursor.last_ended != kNone) {
        members.push_back(cursor.last_ended);
      }
    }
    AddBarriersFor(target, members);
  }
}

// The parent's next request waits for a blocking subagent.
void Play::AddJoins(const WekaSubagent& subagent, std::size_t entry, const Scope& scope) {
  const std::uint32_t parent = ParentOf(entry);
  if (!subagent.blocking || parent == kNone || scope.streams == 0) {
    return;
  }
  const std::span<const Stream> streams =
      std::span(streams_).subspan(scope.first_stream, scope.streams);
  double end = subagent.t + subagent.duration_ms.value_or(0.0) / 1000.0;
  if (!subagent.duration_ms) {
    for (const Stream& stream : streams) {
      for (const std::uint32_t n : stream.nodes) {
        end = std::max(end, End(n));
      }
    }
  }
  for (std::uint32_t n = 0; n < outer_nodes_; ++n) {
    if (nodes_[n].entry < entry || nodes_[n].stream != nodes_[parent].stream ||
        Time(n) + kWekaTolerance < end) {
      continue;
    }
    for (const Stream& stream : streams) {
      const std::uint32_t last = stream.nodes.back();
      AddEdge(n, {.source = last,
                  .relation = AgenticRelation::kJoin,
                  .delay_s = std::max(0.0, Time(n) - End(last))});
    }
    return;
  }
}

// First requests that wait for nothing wait for the play's first one.
void Play::TieLooseStreams() {
  const std::uint32_t root = streams_.front().nodes.front();
  for (const Stream& stream : streams_) {
    const std::uint32_t first = stream.nodes.front();
    if (first != root && edges_[first].empty()) {
      AddEdge(first, {.source = root,
                      .trigger = AgenticTrigger::kDispatch,
                      .relation = AgenticRelation::kSpawn,
                      .delay_s = std::max(0.0, Time(first) - Time(root))});
    }
  }
}

Result<void> Play::Lower() {
  for (std::size_t i = 0; i < object_.entries.size(); ++i) {
    if (!object_.entries[i].subagent) {
      const WekaRequest& request = object_.entries[i].request;
      AddNode(request, i, fmt::format("{}:request:outer:{}", prefix_, i), request.t);
    }
  }
  outer_nodes_ = static_cast<std::uint32_t>(nodes_.size());
  std::vector<Scope> scopes = {AddScope(0, prefix_ + ":session:root")};
  std::vector<std::size_t> entries = {0};
  for (std::size_t i = 0; i < object_.entries.size(); ++i) {
    if (object_.entries[i].subagent) {
      DYNO_TRY(const Scope scope, AddSubagent(*object_.entries[i].subagent, i));
      scopes.push_back(scope);
      entries.push_back(i);
    }
  }
  if (nodes_.empty()) {
    return FailedError(object_.where, fmt::format("{} contains no requests", object_.name));
  }
  edges_.resize(nodes_.size());
  for (const Stream& stream : streams_) {
    AddStreamEdges(stream);
  }
  for (const Scope& scope : scopes) {
    AddBarriers(scope);
  }
  for (std::size_t s = 1; s < scopes.size(); ++s) {
    AddJoins(*object_.entries[entries[s]].subagent, entries[s], scopes[s]);
  }
  TieLooseStreams();
  return {};
}

std::vector<AgenticRequest> Play::Requests(std::uint64_t ordinal, WekaBlockIds& block_ids) const {
  double first = std::numeric_limits<double>::infinity();
  for (const WekaStreamRequest& timing : timing_) {
    first = std::min(first, timing.t);
  }
  std::vector<AgenticRequest> requests;
  requests.reserve(nodes_.size());
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const WekaRequest& request = *nodes_[n].request;
    AgenticRequest out{.where = object_.where};
    out.request_id = timing_[n].id;
    out.play_id = fmt::format("{}:play:{}", prefix_, object_.id);
    out.session_id = streams_[nodes_[n].stream].session;
    out.model = object_.models[request.model];
    out.input_tokens = request.input_tokens;
    out.output_tokens = request.output_tokens;
    out.hash_ids = block_ids.Of(object_, request);
    out.open_last_id = true;
    out.not_before_ms = ToMs(Time(n) - first);
    if (request.api_time) {
      out.recorded_api_time_ms = ToMs(*request.api_time);
    }
    out.play_ordinal = ordinal;
    for (const Edge& edge : edges_[n]) {
      out.dependencies.push_back({.request_id = timing_[edge.source].id,
                                  .trigger = edge.trigger,
                                  .relation = edge.relation,
                                  .delay_ms = ToMs(edge.delay_s)});
    }
    requests.push_back(std::move(out));
  }
  return requests;
}

}  // namespace

std::vector<std::uint64_t> WekaBlockIds::Of(const WekaObject& object, const WekaRequest& request) {
  const std::span<const std::uint64_t> hashes = object.Hashes(request);
  const std::uint64_t full = request.input_tokens / object.block_size;
  const std::span<const std::uint64_t> shared =
      hashes.first(std::min<std::uint64_t>(full, hashes.size()));
  std::vector<std::uint64_t> out;
  out.reserve(shared.size() + 1);
  for (const std::uint64_t hash : shared) {
    // An object cannot hold more distinct hashes than there are numbers: its text is limited.
    const std::uint32_t number = numbers_.Number(hash);
    if (number == ids_.size()) {
      ids_.push_back(next_id_++);
    }
    out.push_back(ids_[number]);
  }
  if (shared.size() * object.block_size < request.input_tokens) {
    out.push_back(next_id_++);
  }
  return out;
}

Result<std::vector<AgenticRequest>> MakeWekaPlay(const WekaObject& object, std::uint64_t ordinal,
                                                 bool relative_times, WekaBlockIds& block_ids) {
  Play play(object, relative_times);
  DYNO_TRY_VOID(play.Lower());
  block_ids.BeginObject();
  return play.Requests(ordinal, block_ids);
}

}  // namespace dynosim::workload
