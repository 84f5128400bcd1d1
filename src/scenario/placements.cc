// SPDX-License-Identifier: Apache-2.0
#include "scenario/placements.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"

namespace dynosim::scenario {
namespace {

std::optional<std::uint64_t> Count(const Json* value) {
  if (value == nullptr || !value->is_integer()) {
    return std::nullopt;
  }
  if (const auto* n = std::get_if<std::int64_t>(&value->value())) {
    return *n < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*n));
  }
  return std::get<std::uint64_t>(value->value());
}

std::optional<std::uint32_t> Small(const Json* value) {
  const auto count = Count(value);
  if (!count || *count > std::numeric_limits<std::uint32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*count);
}

Error Bad(const std::string& where, std::string_view what) {
  return {ErrorKind::kFailed, where, std::string(what)};
}

Result<void> ReadRouting(const Json& row, const std::string& where, PlacedRow& out) {
  const Json* history = row.Find("routing_history");
  if (history == nullptr || !history->is_array()) {
    return std::unexpected(Bad(where, "routing_history is missing or no list"));
  }
  for (const Json& decision : history->array()) {
    const Json* pool = decision.is_object() ? decision.Find("pool") : nullptr;
    const auto target = decision.is_object() ? Small(decision.Find("scheduler_id")) : std::nullopt;
    if (pool == nullptr || !pool->is_string() || !target) {
      return std::unexpected(
          Bad(where, "routing_history has a record without pool and scheduler_id"));
    }
    std::optional<std::uint32_t>& place = pool->string() == "prefill"  ? out.prefill
                                          : pool->string() == "decode" ? out.decode
                                                                       : out.aggregated;
    if (!place) {
      place = target;
    }
  }
  return {};
}

Result<PlacedRow> ReadRow(const Json& row, const std::string& where) {
  if (!row.is_object()) {
    return std::unexpected(Bad(where, "is not an object"));
  }
  PlacedRow out;
  const Json* arrival = row.Find("arrival_time_ms");
  const auto prompt = Count(row.Find("input_length"));
  const auto output = Count(row.Find("requested_output_length"));
  if (arrival == nullptr || !arrival->is_number() || !prompt || !output) {
    return std::unexpected(
        Bad(where, "needs arrival_time_ms, input_length and requested_output_length"));
  }
  out.arrival_ms = arrival->number();
  out.prompt_tokens = *prompt;
  out.output_tokens = *output;
  if (const Json* id = row.Find("request_id"); id != nullptr && id->is_string()) {
    out.request_id = id->string();
  }
  if (const Json* session = row.Find("session_id"); session != nullptr && session->is_string()) {
    out.session = session->string();
    out.turn = Small(row.Find("turn_index"));
  }
  DYNO_TRY_VOID(ReadRouting(row, where, out));
  return out;
}

}  // namespace

Result<Placements> LoadPlacements(const std::string& path) {
  DYNO_TRY(const MappedFile file, MappedFile::Open(path));
  const Result<Json> parsed = ParseJson(file.Text(), path);
  if (!parsed) {
    return FailedError(parsed.error().where, parsed.error().message);
  }
  const Json& report = *parsed;
  const Json* rows = report.is_object() ? report.Find("per_request") : nullptr;
  if (rows == nullptr || !rows->is_array()) {
    return FailedError(path,
                       "has no per_request rows; write the report with --capture-per-request");
  }
  Placements out;
  out.rows.reserve(rows->array().size());
  for (std::size_t i = 0; i < rows->array().size(); ++i) {
    DYNO_TRY(PlacedRow row,
             ReadRow(rows->array()[i], path + ": per_request[" + std::to_string(i) + "]"));
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace dynosim::scenario
