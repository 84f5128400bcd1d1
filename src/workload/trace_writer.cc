// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_writer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "workload/agentic_graph.h"
#include "workload/block_names.h"
#include "workload/request.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"

namespace dynosim::workload {
namespace {

// One line that grows member by member.
class Line {
 public:
  void Member(std::string_view name) {
    text_ += text_.size() == 1 ? "\"" : ", \"";
    text_ += name;
    text_ += "\": ";
  }
  void Number(std::string_view name, std::uint64_t value) {
    Member(name);
    fmt::format_to(std::back_inserter(text_), "{}", value);
  }
  void Signed(std::string_view name, std::int64_t value) {
    Member(name);
    fmt::format_to(std::back_inserter(text_), "{}", value);
  }
  void Decimal(std::string_view name, double value) {
    Member(name);
    AppendJsonNumber(text_, value);
  }
  void Text(std::string_view name, std::string_view value) {
    Member(name);
    AppendJsonString(text_, value);
  }
  // Every `step`-th value from the first.
  void List(std::string_view name, std::span<const std::uint32_t> values, std::uint64_t step = 1) {
    Member(name);
    text_ += '[';
    for (std::uint64_t i = 0; i < values.size(); i += step) {
      fmt::format_to(std::back_inserter(text_), "{}{}", i == 0 ? "" : ", ", values[i]);
    }
    text_ += ']';
  }
  std::string& text() { return text_; }
  std::string_view Finish() {
    text_ += "}\n";
    return text_;
  }

 private:
  std::string text_ = "{";
};

class TableWriter {
 public:
  TableWriter(const TraceTable& table, const WriteOptions& options, const LineSink& sink)
      : table_(table), options_(options), sink_(sink) {}

  void Write() {
    if (!options_.by_time) {
      for (std::uint32_t r = 0; r < table_.rows.size(); ++r) {
        WriteRow(r);
      }
      return;
    }
    std::vector<std::uint32_t> order(table_.sessions.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto time = [this](std::uint32_t s) {
      const double first_ms = table_.sessions[s].first_ms;
      return std::isnan(first_ms) ? std::numeric_limits<double>::infinity() : first_ms;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return time(a) < time(b); });
    origin_ms_ = order.empty() || std::isinf(time(order.front())) ? 0.0 : time(order.front());
    for (const std::uint32_t s : order) {
      for (std::uint32_t r = table_.sessions[s].first_row; r != kNone;
           r = table_.rows[r].next_row) {
        WriteRow(r);
      }
    }
  }

 private:
  void WriteRow(std::uint32_t r) const;
  void WriteIds(std::uint32_t r, Line& line) const;
  void WriteExtras(const TraceRow& row, Line& line) const;

  const TraceTable& table_;
  const WriteOptions& options_;
  const LineSink& sink_;
  double origin_ms_ = 0.0;
};

void TableWriter::WriteIds(std::uint32_t r, Line& line) const {
  const TraceRow& row = table_.rows[r];
  if (table_.cumulative) {
    const std::uint64_t begin = r == 0 ? 0 : table_.block_ids_end[r - 1];
    line.List("hash_ids",
              std::span(table_.block_ids).subspan(begin, table_.block_ids_end[r] - begin));
    return;
  }
  std::vector<std::uint32_t> tokens;
  table_.block_names.Tokens({row.node, row.input_tokens}, tokens);
  line.List("hash_ids", tokens, table_.trace_block_size);
}

void TableWriter::WriteExtras(const TraceRow& row, Line& line) const {
  if (row.extras == kNone) {
    return;
  }
  const RowExtras& extras = table_.extras[row.extras];
  if (extras.explicit_output) {
    line.List(
        "output_token_ids",
        std::span(table_.output_token_ids).subspan(extras.output_tokens_begin, row.output_tokens));
  }
  if (extras.priority != 0) {
    line.Signed("priority", extras.priority);
  }
  if (extras.strict_priority != 0) {
    line.Number("strict_priority", extras.strict_priority);
  }
  if (extras.policy_class != kNone) {
    line.Text("policy_class", table_.policy_classes[extras.policy_class]);
  }
}

void TableWriter::WriteRow(std::uint32_t r) const {
  const TraceRow& row = table_.rows[r];
  const TraceSession& session = table_.sessions[row.session];
  Line line;
  if (session.turns > 1 || session.name != kNone) {
    line.Text("session_id", table_.SessionName(row.session));
  }
  if (row.turn > 0) {
    line.Decimal("delay", row.delay_ms * options_.time_factor);
  } else if (!std::isnan(session.first_ms)) {
    line.Decimal("timestamp", (session.first_ms - origin_ms_) * options_.time_factor);
  }
  line.Number("input_length", row.input_tokens);
  line.Number("output_length", row.output_tokens);
  WriteIds(r, line);
  WriteExtras(row, line);
  sink_(line.Finish());
}

void WriteDependencies(const AgenticGraph& graph, std::uint32_t node, double factor, Line& line) {
  line.Member("dependencies");
  std::string& text = line.text();
  text += '[';
  bool first = true;
  for (const AgenticEdge& edge : graph.EdgesInto(node)) {
    Line dependency;
    dependency.Text("request_id", graph.nodes[edge.source].id);
    dependency.Text("trigger", TriggerName(edge.trigger));
    dependency.Decimal("delay_ms", edge.delay_ms * factor);
    dependency.Text("relation", RelationName(edge.relation));
    text += first ? "" : ", ";
    text += dependency.text();
    text += '}';
    first = false;
  }
  text += ']';
}

void WriteNode(const AgenticGraph& graph, std::uint32_t n, double factor, const LineSink& sink) {
  const AgenticNode& node = graph.nodes[n];
  const AgenticPlay& play = graph.plays[node.play];
  Line line;
  line.Text("request_id", node.id);
  line.Text("play_id", play.id);
  if (play.has_ordinal) {
    line.Number("source_play_ordinal", node.play);
  }
  line.Text("session_id", graph.sessions[node.session]);
  line.Text("model", graph.models[node.model]);
  line.Number("input_length", node.input_tokens);
  line.Number("output_length", node.output_tokens);
  std::vector<std::uint32_t> tokens;
  graph.block_names.Tokens({node.prompt_node, node.input_tokens}, tokens);
  line.List("hash_ids", tokens, graph.block_size);
  line.Decimal("not_before_ms", node.not_before_ms * factor);
  if (node.recorded_api_time_ms) {
    line.Decimal("recorded_api_time_ms", *node.recorded_api_time_ms * factor);
  }
  if (node.explicit_output) {
    line.List(
        "output_token_ids",
        std::span(graph.output_token_ids).subspan(node.output_tokens_begin, node.output_tokens));
  }
  if (node.priority != 0) {
    line.Signed("priority", node.priority);
  }
  if (node.strict_priority != 0) {
    line.Number("strict_priority", node.strict_priority);
  }
  if (node.policy_class != kNone) {
    line.Text("policy_class", graph.policy_classes[node.policy_class]);
  }
  WriteDependencies(graph, n, factor, line);
  sink(line.Finish());
}

void WriteGraph(const AgenticGraph& graph, double factor, const LineSink& sink) {
  Line header;
  header.Text("schema", "dynamo.agentic_mooncake");
  header.Number("version", 2);
  header.Number("block_size", graph.block_size);
  header.Text("hash_id_scope", "local");
  header.Member("source");
  Line source;
  source.Text("format", graph.source_format);
  source.Text("digest", graph.source_digest.empty() ? "none" : graph.source_digest);
  header.text() += source.text() + "}";
  sink(header.Finish());
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    WriteNode(graph, n, factor, sink);
  }
}

}  // namespace

std::string_view WrittenFormat(const TraceContents& contents) {
  if (contents.graph) {
    return "agentic_mooncake";
  }
  return contents.table->cumulative ? "mooncake-delta" : "mooncake";
}

std::uint64_t WrittenBlockSize(const TraceContents& contents) {
  return contents.graph ? contents.graph->block_size : contents.table->trace_block_size;
}

void WriteTrace(const TraceContents& contents, const WriteOptions& options, const LineSink& sink) {
  if (contents.graph) {
    WriteGraph(*contents.graph, options.time_factor, sink);
  } else {
    TableWriter(*contents.table, options, sink).Write();
  }
}

}  // namespace dynosim::workload
