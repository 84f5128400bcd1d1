// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd_explain.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "cli/program.h"
#include "report/per_request.h"

namespace dynosim::cli {
namespace {

std::string Shown(const Json& row, std::string_view key) {
  const Json* value = row.Find(key);
  return value == nullptr ? "-" : value->is_string() ? value->string() : DumpJson(*value);
}

bool IsString(const Json& row, std::string_view key, std::string_view text) {
  const Json* value = row.Find(key);
  return value != nullptr && value->is_string() && value->string() == text;
}

// Number 3 is the row whose uuid counts 3.
std::string UuidOf(const std::string& request) {
  std::uint32_t number = 0;
  const char* end = request.data() + request.size();
  const auto read = std::from_chars(request.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && number > 0 ? report::RequestUuid(number - 1)
                                                                 : request;
}

const Json* FindRow(const Json::Array& rows, const std::string& request) {
  const std::string uuid = UuidOf(request);
  const auto found = std::ranges::find_if(rows, [&](const Json& row) {
    return row.is_object() && (IsString(row, "uuid", uuid) || IsString(row, "request_id", request));
  });
  return found == rows.end() ? nullptr : &*found;
}

// Counts as they are, costs with two digits.
std::string Rounded(const Json& row, std::string_view key) {
  const Json* value = row.Find(key);
  return value != nullptr && value->is_number() && !value->is_integer()
             ? fmt::format("{:.2f}", value->number())
             : Shown(row, key);
}

constexpr std::pair<std::string_view, std::string_view> kColumns[] = {
    {"logical_worker_id", "worker"},     {"dp_rank", "rank"},
    {"overlap_blocks", "cached blocks"}, {"active_prefill_tokens", "prompt tokens ahead"},
    {"active_blocks", "blocks in use"},  {"additional_blocks", "new blocks"},
    {"active_requests", "requests"},     {"overlap_credit", "credit"},
    {"prefill_cost", "prefill cost"},    {"decode_cost", "decode cost"},
    {"request_cost", "request cost"},    {"cost", "cost"},
};

void AppendCandidates(std::string& text, const Json& decision) {
  const Json* candidates = decision.Find("candidates");
  if (candidates == nullptr || !candidates->is_array() || candidates->array().empty()) {
    text += "  no candidates in the report: write it with --capture-routing\n";
    return;
  }
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& [key, title] : kColumns) {
    lines[0].emplace_back(title);
  }
  const std::string worker = Shown(decision, "logical_worker_id");
  const std::string rank = Shown(decision, "dp_rank");
  std::size_t chosen = 0;
  for (const Json& candidate : candidates->array()) {
    std::vector<std::string> line;
    for (const auto& [key, title] : kColumns) {
      line.push_back(Rounded(candidate, key));
    }
    if (line[0] == worker && line[1] == rank) {
      chosen = lines.size();
    }
    lines.push_back(std::move(line));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += chosen != 0 && i == chosen ? "  > " : "    ";
    for (std::size_t c = 0; c < lines[i].size(); ++c) {
      std::size_t width = 0;
      for (const auto& line : lines) {
        width = std::max(width, line[c].size());
      }
      text += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", lines[i][c], width);
    }
    text += '\n';
  }
}

void AppendDecision(std::string& text, const Json& decision) {
  text += fmt::format("pool {}, {}", Shown(decision, "pool"), Shown(decision, "outcome"));
  if (IsString(decision, "outcome", "queued")) {
    text += fmt::format(" from {} to {} ms ({} ms)", Shown(decision, "queue_entered_at_ms"),
                        Shown(decision, "released_at_ms"), Shown(decision, "queue_wait_ms"));
  }
  text += fmt::format(": worker {} rank {}\n", Shown(decision, "logical_worker_id"),
                      Shown(decision, "dp_rank"));
  if (const Json* overlap = decision.Find("selected_overlap_blocks");
      overlap != nullptr && !overlap->is_null()) {
    text += fmt::format("  cached blocks there {}, best of all {}, regret {}\n", DumpJson(*overlap),
                        Shown(decision, "best_available_overlap_blocks"),
                        Shown(decision, "overlap_regret_blocks"));
  }
  AppendCandidates(text, decision);
}

Result<void> Explain(const std::string& path, const std::string& request) {
  DYNO_TRY(const MappedFile file, MappedFile::Open(path));
  const Result<Json> parsed = ParseJson(file.Text(), path);
  if (!parsed) {
    return FailedError(parsed.error().where, parsed.error().message);
  }
  const Json& report = *parsed;
  const Json* rows = report.is_object() ? report.Find("per_request") : nullptr;
  if (rows == nullptr || !rows->is_array()) {
    return FailedError(path, "has no per_request rows; write the report with --capture-routing");
  }
  const Json* row = FindRow(rows->array(), request);
  if (row == nullptr) {
    return FailedError(path, "has no row for request '" + request +
                                 "'; give a uuid, a request_id or a number from 1");
  }
  std::string text = fmt::format("request {}: arrival {} ms, {} prompt tokens, {} output tokens\n",
                                 Shown(*row, "uuid"), Shown(*row, "arrival_time_ms"),
                                 Shown(*row, "input_length"), Shown(*row, "output_length"));
  const Json* history = row->Find("routing_history");
  if (history != nullptr && history->is_array()) {
    for (const Json& decision : history->array()) {
      AppendDecision(text, decision);
    }
  }
  return Print(text);
}

}  // namespace

int RunExplain(const std::string& report, const std::string& request) {
  const Result<void> done = Explain(report, request);
  return done ? kExitOk : ReportError(done.error());
}

}  // namespace dynosim::cli
