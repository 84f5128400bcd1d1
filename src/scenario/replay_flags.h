// SPDX-License-Identifier: Apache-2.0
// From the flags of `replay` to a Scenario. ReplayFlags holds what the user typed, as text; reading
// numbers and every rule between flags is here, so that each surface reports the same errors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scenario/scenario.h"

namespace dynosim::scenario {

// A flag that was not given is absent.
struct ReplayFlags {
  using Text = std::optional<std::string>;

  std::vector<std::string> trace_files;
  Text trace_format, trace_block_size, trace_shared_prefix_ratio, trace_num_prefix_groups;
  Text execution_model, agentic_lanes, weka_nested_timestamp_basis;
  Text input_tokens, output_tokens, request_count;
  Text request_rate, arrival_interval_ms, arrival_seed;
  Text turns_per_session, shared_prefix_ratio, num_prefix_groups, inter_turn_delay_ms;
  Text session_prompts;
  Text replay_concurrency, arrival_speedup_ratio;
  Text replay_mode, num_workers;
  Text router_mode, router_config, router_policy_config, router_seed, model_name, placements,
      kv_event_lag_ms;
  Text router_policy_default;  // of the environment; used by the KV router without a flag
  Text extra_engine_args;
  Text prefill_engine_args, decode_engine_args, num_prefill_workers, num_decode_workers;
  Text max_sim_time_seconds, max_sim_time_ms;
  Text sla_ttft_ms, sla_itl_ms, sla_e2e_ms;
  Text report_html, trace_out;
  Text report_json, report_jsonl, telemetry_jsonl, telemetry_sample_interval_ms;
  // Flags of PerfModelFlags() that were given, with their values.
  std::vector<std::pair<std::string, std::string>> perf_model;
  bool capture_per_request = false;
  bool capture_telemetry = false;
  bool capture_routing = false;
  bool pass_by_pass = false;
  // Flags of kUnavailableFlags that were given, in the order of the command line.
  std::vector<std::string> unavailable;
};

// A flag that is known but whose subject is not in this version.
struct UnavailableFlag {
  constexpr UnavailableFlag(std::string_view flag, std::string_view belongs_to)
      : name(flag), subject(belongs_to) {}
  std::string_view name;
  std::string_view subject;
};
std::span<const UnavailableFlag> UnavailableFlags();

// Checked flags: what to run, and where its results go.
struct Replay {
  Scenario scenario;
  std::string report_json;     // empty: the default name in the current directory
  bool report_is_new = false;  // its name is a default, so a file that is there stays
  std::string report_jsonl;    // empty: no file
  std::string report_html;     // empty: no page
  std::string trace_out;       // empty: no trace of the run
};

Result<Replay> BuildReplay(const ReplayFlags& flags);

}  // namespace dynosim::scenario
