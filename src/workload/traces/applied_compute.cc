// SPDX-License-Identifier: Apache-2.0
#include "workload/traces/applied_compute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "base/numeric.h"
#include "base/result.h"
#include "base/text_file.h"
#include "workload/block_names.h"
#include "workload/limits.h"
#include "workload/spec.h"
#include "workload/trace_sessions.h"
#include "workload/trace_table.h"
#include "workload/traces/contents.h"
#include "workload/traces/json_members.h"
#include "workload/traces/json_rows.h"
#include "workload/traces/unsigned_list.h"

namespace dynosim::workload {
namespace {

enum class Field : std::uint8_t {
  kTurns,
  kPrompt,
  kResponses,
  kToolOutputs,
  kLatencies,
  kFinalResponse,
  kOther,
};
constexpr std::array kFields = {
    MemberName<Field>{"num_turns", Field::kTurns},
    MemberName<Field>{"input_prompt_length", Field::kPrompt},
    MemberName<Field>{"assistant_response_length", Field::kResponses},
    MemberName<Field>{"tool_call_output_length", Field::kToolOutputs},
    MemberName<Field>{"tool_call_latency", Field::kLatencies},
    MemberName<Field>{"final_assistant_response_length", Field::kFinalResponse},
};

// One line.
struct Session {
  std::optional<std::uint64_t> turns, prompt, final_response;
  UnsignedList responses, tool_outputs;
  bool has_latencies = false;
  std::vector<double> latencies_s;
};

bool ReadLatencies(JsonRows& rows, Session& session) {
  if (!rows.EnterList(session.has_latencies) || !session.has_latencies) {
    return !rows.Failed();
  }
  while (rows.NextElement()) {
    std::optional<double> latency_s;
    if (!rows.ReadDecimal(latency_s)) {
      return false;
    }
    if (!latency_s) {
      return rows.FailMember("must be a number");
    }
    session.latencies_s.push_back(*latency_s);
  }
  return !rows.Failed();
}

bool ReadMember(JsonRows& rows, Field field, Session& session) {
  switch (field) {
    case Field::kTurns:
      return rows.ReadUnsigned(kMaxRequests, session.turns);
    case Field::kPrompt:
      return rows.ReadUnsigned(kMaxTokens, session.prompt);
    case Field::kResponses:
      return rows.ReadUnsignedList(kMaxTokens, session.responses);
    case Field::kToolOutputs:
      return rows.ReadUnsignedList(kMaxTokens, session.tool_outputs);
    case Field::kLatencies:
      return ReadLatencies(rows, session);
    case Field::kFinalResponse:
      return rows.ReadUnsigned(kMaxTokens, session.final_response);
    case Field::kOther:
      return rows.Skip();
  }
  return false;
}

bool ReadSession(JsonRows& rows, Session& session) {
  MemberReader<Field> members(kFields);
  while (members.Next(rows)) {
    if (!ReadMember(rows, members.field(), session)) {
      return false;
    }
  }
  const bool given[] = {session.turns.has_value(), session.prompt.has_value(),
                        session.responses.present, session.tool_outputs.present,
                        session.has_latencies,     session.final_response.has_value()};
  for (std::size_t i = 0; i < kFields.size() && !rows.Failed(); ++i) {
    if (!given[i]) {
      rows.Fail(fmt::format("{} is missing", kFields[i].name));
    }
  }
  return !rows.Failed();
}

bool CheckSession(JsonRows& rows, const Session& session) {
  const std::uint64_t turns = *session.turns;
  const std::size_t sizes[] = {session.responses.size, session.tool_outputs.size,
                               session.latencies_s.size()};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    if (sizes[i] != turns) {
      return rows.Fail(fmt::format("{} has {} elements, but num_turns is {}", kFields[i + 2].name,
                                   sizes[i], turns));
    }
  }
  if (*session.prompt == 0) {
    return rows.Fail("input_prompt_length must be greater than 0");
  }
  for (std::size_t i = 0; i < session.latencies_s.size(); ++i) {
    if (!std::isfinite(session.latencies_s[i]) || session.latencies_s[i] < 0.0) {
      return rows.Fail(fmt::format("tool_call_latency[{}] must be finite and at least 0, got {}", i,
                                   session.latencies_s[i]));
    }
  }
  return true;
}

struct Prefixes {
  double ratio = 0.0;
  std::uint32_t groups = 0;
};

Result<Prefixes> CheckPrefixes(const TraceSpec& spec) {
  if (!(spec.shared_prefix_ratio >= 0.0 && spec.shared_prefix_ratio <= 1.0)) {
    return UsageError("--trace-shared-prefix-ratio",
                      fmt::format("shared_prefix_ratio must be between 0.0 and 1.0, got {}",
                                  spec.shared_prefix_ratio));
  }
  constexpr std::int64_t kMaxGroups = std::numeric_limits<std::uint32_t>::max();
  if (spec.num_prefix_groups < 0 || spec.num_prefix_groups > kMaxGroups) {
    return UsageError("--trace-num-prefix-groups",
                      fmt::format("num_prefix_groups must be from 0 to {}, got {}", kMaxGroups,
                                  spec.num_prefix_groups));
  }
  return Prefixes{.ratio = spec.shared_prefix_ratio,
                  .groups = spec.shared_prefix_ratio > 0.0
                                ? static_cast<std::uint32_t>(spec.num_prefix_groups)
                                : 0};
}

// Prompts of sessions: a run of tokens that a group of sessions has in common, in whole blocks,
// then a run of the session's own. Blocks are equal when everything before them is, so the runs
// need no more than one value each.
class Prompts {
 public:
  Prompts(Prefixes prefixes, std::uint64_t block_size)
      : prefixes_(prefixes), block_size_(block_size) {}

  void BeginSession(std::uint32_t line, std::uint64_t prompt_tokens) {
    const std::uint64_t blocks = (prompt_tokens - 1) / block_size_ + 1;
    const auto shared_blocks =
        SaturatingCast<std::uint64_t>(RoundHalfAway(static_cast<double>(blocks) * prefixes_.ratio));
    shared_tokens_ = prefixes_.groups == 0 ? 0 : SaturatingMultiply(shared_blocks, block_size_);
    group_ = prefixes_.groups == 0 ? 0 : (line - 1) % prefixes_.groups;
    own_value_ = next_value_++;
    prompt_ = {};
  }

  // Makes the prompt `tokens` long. A block that was filled in part keeps its identity.
  void Grow(BlockNames& names, std::uint64_t tokens) {
    const std::uint64_t shared = std::min(tokens, shared_tokens_);
    if (prompt_.tokens < shared) {
      prompt_ = names.Append(prompt_, GroupValue(), shared - prompt_.tokens);
    }
    prompt_ = names.Append(prompt_, own_value_, tokens - prompt_.tokens);
  }
  std::uint32_t node() const { return prompt_.node; }

 private:
  std::uint32_t GroupValue() {
    const auto [value, is_new] = group_values_.TryInsert(group_, next_value_);
    next_value_ += is_new ? 1 : 0;
    return *value;
  }

  Prefixes prefixes_;
  std::uint64_t block_size_;
  FlatMap<std::uint32_t, std::uint32_t> group_values_;
  std::uint32_t next_value_ = 0;  // at most two for each session
  std::uint32_t own_value_ = 0;
  std::uint64_t shared_tokens_ = 0;
  std::uint32_t group_ = 0;
  BlockNames::Sequence prompt_;
};

bool AddSession(JsonRows& rows, const Session& session, Prompts& prompts, TraceSessions& sessions,
                TraceTable& table) {
  const std::string name = fmt::format("applied_compute_agentic_session_{}", rows.Line());
  const std::uint32_t index = sessions.Find(table, name, rows.Line());
  TraceRow row{.input_tokens = *session.prompt};
  prompts.BeginSession(rows.Line(), *session.prompt);
  for (std::uint64_t turn = 0; turn <= *session.turns; ++turn) {
    if (table.rows.size() == kMaxRequests) {
      return rows.Fail(fmt::format("the trace has more than {} turns", kMaxRequests));
    }
    const bool last = turn == *session.turns;
    row.output_tokens = last ? *session.final_response : session.responses.Values()[turn];
    if (row.input_tokens > kMaxTokens) {
      return rows.Fail(
          fmt::format("the prompt of turn {} is longer than {} tokens", turn, kMaxTokens));
    }
    prompts.Grow(table.block_names, row.input_tokens);
    row.node = prompts.node();
    sessions.Append(table, index, row, std::nullopt);
    if (!last) {
      row.input_tokens += row.output_tokens + session.tool_outputs.Values()[turn];
      row.delay_ms = session.latencies_s[turn] * 1000.0;
    }
  }
  return true;
}

}  // namespace

Result<TraceContents> ReadAppliedCompute(const WorkloadSpec& workload, const TraceSpec& spec) {
  if (!workload.replay_concurrency) {
    return UsageError("",
                      "--trace-format applied_compute_agentic needs --replay-concurrency: its "
                      "traces have no first-turn timestamps (replay_concurrency)");
  }
  DYNO_TRY(const std::uint64_t block_size, TraceBlockSize(spec));
  DYNO_TRY(const Prefixes prefixes, CheckPrefixes(spec));
  const std::string& path = spec.files.front();
  DYNO_TRY(const TextFile file, TextFile::Read(path));
  TraceContents contents{.path = path};
  TraceTable& table = contents.table.emplace();
  table.trace_block_size = block_size;
  JsonRows rows(path, file.Text());
  Prompts prompts(prefixes, block_size);
  TraceSessions sessions;
  while (rows.NextRow()) {
    Session session;
    if (!ReadSession(rows, session) || !CheckSession(rows, session) ||
        !AddSession(rows, session, prompts, sessions, table)) {
      break;
    }
  }
  if (rows.Failed()) {
    return std::unexpected(rows.Problem());
  }
  return contents;
}

}  // namespace dynosim::workload
