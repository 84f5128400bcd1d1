// SPDX-License-Identifier: Apache-2.0
// Small replays in a short notation, as tables. A row is "timestamp/input/output[ids]", where ids
// may be ranges ("0..31"); a text that starts with '{' is a line of the trace as it is. Every run
// goes from flags to the JSON report, and values are read back from the parsed report, so that a
// number that gets lost on the way, or is no valid JSON, cannot pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "scenario/replay_flags.h"

namespace dynosim::testing {

// One worker, trace blocks of 64 tokens, and the engine
//   {"backend":"vllm","block_size":64,"num_gpu_blocks":1024,
//    "timing_model":{"type":"fixed","prefill_ms":10,"decode_ms":2}}
// so that a pass costs 10 ms if it holds prefill work plus 2 ms if it holds decode work.
struct FieldReplay {
  std::vector<std::string> rows{};
  std::string engine{};  // members that add to or replace those of the engine
  std::string trace_block{"64"};
  std::optional<std::string> trace_format{};  // without blocks; of `file`
  std::optional<std::string> concurrency{};
  std::optional<std::string> max_sim_time_ms{};
  std::string file{};          // bytes of the trace file, instead of rows
  bool disaggregated = false;  // two engines of these members, prefill and decode
  std::string workers{"1"};    // aggregated
  std::optional<std::string> router_mode{}, router_config{}, router_seed{}, kv_event_lag_ms{};
};

struct FieldResult {
  std::string error;  // of flags, trace or run; the rest is empty then
  std::vector<std::string> warnings;
  Json report;

  // A member of the summary, or a column of the per-request rows separated by blanks, as text:
  // numbers in their shortest form, "null", and "-" for a member that a row does not have.
  std::string Of(std::string_view name) const;
  // The same for a member of the first routing decision of every row.
  std::string OfRouting(std::string_view name) const;
};

FieldResult Replayed(const FieldReplay& replay);
FieldResult Replayed(const scenario::ReplayFlags& flags);

// What a replay must give: names for FieldResult::Of with their texts.
struct FieldCase {
  std::string_view what;
  FieldReplay replay;
  std::vector<std::pair<std::string_view, std::string>> expected;
};

// Runs every case with each of the backends, on the fast path and pass by pass. An empty backend
// leaves the choice to the case.
void ExpectResults(const std::vector<FieldCase>& cases,
                   const std::vector<std::string>& backends = {""});

}  // namespace dynosim::testing
