// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_options.h"

#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/program.h"
#include "scenario/prefill_estimate.h"
#include "scenario/replay_flags.h"

namespace dynosim::cli {
namespace {

using scenario::ReplayFlags;

struct TextFlag {
  constexpr TextFlag(const char* flag_name, ReplayFlags::Text ReplayFlags::* text,
                     const char* value_name, const char* help_text)
      : name(flag_name), member(text), value(value_name), help(help_text) {}
  const char* name;
  ReplayFlags::Text ReplayFlags::* member;
  const char* value;  // and the values it may have, as CLI11 writes them: "KIND:{a,b}"
  const char* help;
};

struct Group {
  constexpr Group(const char* group_title, std::span<const TextFlag> group_flags)
      : title(group_title), flags(group_flags) {}
  const char* title;
  std::span<const TextFlag> flags;
};

constexpr std::array kTrace = {
    TextFlag("--trace-format", &ReplayFlags::trace_format,
             "NAME:{mooncake,mooncake-delta,agentic_mooncake,weka,applied_compute_agentic,dynamo,"
             "azure,burstgpt,bailian,lengths}",
             "mooncake (default), mooncake-delta, agentic_mooncake, weka, applied_compute_agentic, "
             "dynamo, azure, burstgpt, bailian or lengths"),
    TextFlag("--trace-block-size", &ReplayFlags::trace_block_size, "TOKENS",
             "Tokens that one hash id stands for (default 512, or as the trace says)"),
    TextFlag("--trace-shared-prefix-ratio", &ReplayFlags::trace_shared_prefix_ratio, "RATIO",
             "Share of a prompt that a prefix group has in common (applied_compute_agentic)"),
    TextFlag("--trace-num-prefix-groups", &ReplayFlags::trace_num_prefix_groups, "N",
             "Number of prefix groups (applied_compute_agentic)"),
    TextFlag("--execution-model", &ReplayFlags::execution_model, "NAME",
             "Model that the requests of an agentic trace run on; needed for them"),
    TextFlag("--agentic-lanes", &ReplayFlags::agentic_lanes, "N",
             "Plays of an agentic trace at a time, one after the other on each lane"),
    TextFlag("--weka-nested-timestamp-basis", &ReplayFlags::weka_nested_timestamp_basis,
             "BASIS:{auto,absolute,relative}",
             "Times inside weka subagents: auto (default), absolute or relative"),
    TextFlag("--max-sim-time-seconds", &ReplayFlags::max_sim_time_seconds, "S",
             "Stop before the first event after this virtual time"),
    TextFlag("--max-sim-time-ms", &ReplayFlags::max_sim_time_ms, "MS", "The same in milliseconds"),
};

constexpr std::array kSynthetic = {
    TextFlag("--input-tokens", &ReplayFlags::input_tokens, "N", "Prompt tokens of a request"),
    TextFlag("--output-tokens", &ReplayFlags::output_tokens, "N", "Output tokens of a request"),
    TextFlag("--request-count", &ReplayFlags::request_count, "N",
             "Requests, or sessions with several turns"),
    TextFlag("--request-rate", &ReplayFlags::request_rate, "PER_S", "Poisson arrivals per second"),
    TextFlag("--arrival-interval-ms", &ReplayFlags::arrival_interval_ms, "MS",
             "Fixed time between arrivals; 0 for all at once"),
    TextFlag("--arrival-seed", &ReplayFlags::arrival_seed, "SEED",
             "Seed of the arrivals (default 42)"),
    TextFlag("--turns-per-session", &ReplayFlags::turns_per_session, "N",
             "Turns of a session (default 1)"),
    TextFlag("--inter-turn-delay-ms", &ReplayFlags::inter_turn_delay_ms, "MS",
             "Think time between turns (default 0)"),
    TextFlag("--shared-prefix-ratio", &ReplayFlags::shared_prefix_ratio, "RATIO",
             "Share of a prompt that its prefix group has in common (default 0)"),
    TextFlag("--num-prefix-groups", &ReplayFlags::num_prefix_groups, "N",
             "Number of prefix groups (default 0)"),
    TextFlag("--session-prompts", &ReplayFlags::session_prompts, "KIND:{fixed,cumulative}",
             "fixed (default): every turn has the same length; cumulative: a turn repeats the "
             "conversation so far"),
};

constexpr std::array kLoad = {
    TextFlag("--replay-concurrency", &ReplayFlags::replay_concurrency, "N",
             "Closed loop: this many requests or sessions at a time, times ignored"),
    TextFlag("--arrival-speedup-ratio", &ReplayFlags::arrival_speedup_ratio, "RATIO",
             "Divides arrival times (default 1)"),
    TextFlag("--replay-mode", &ReplayFlags::replay_mode, "MODE:{offline,online}",
             "offline (default), or online: in real time"),
};

constexpr std::array kDeployment = {
    TextFlag("--extra-engine-args", &ReplayFlags::extra_engine_args, "JSON",
             "Engine configuration as a JSON object, or a file of it"),
    TextFlag("--num-workers", &ReplayFlags::num_workers, "N", "Workers (default 1)"),
    TextFlag("--prefill-engine-args", &ReplayFlags::prefill_engine_args, "JSON",
             "Engine of the prefill pool (worker_type prefill); with the next flag this selects "
             "prefill/decode disaggregation"),
    TextFlag("--decode-engine-args", &ReplayFlags::decode_engine_args, "JSON",
             "Engine of the decode pool (worker_type decode)"),
    TextFlag("--num-prefill-workers", &ReplayFlags::num_prefill_workers, "N",
             "Prefill workers (default 1)"),
    TextFlag("--num-decode-workers", &ReplayFlags::num_decode_workers, "N",
             "Decode workers (default 1)"),
};

constexpr std::array kRouting = {
    TextFlag("--router-mode", &ReplayFlags::router_mode,
             "MODE:{round_robin,kv_router,random,least_loaded,power_of_two}",
             "round_robin (default), kv_router, random, least_loaded or power_of_two"),
    TextFlag("--router-config", &ReplayFlags::router_config, "JSON",
             "Fields of the KV router as a JSON object, or a file of it"),
    TextFlag("--router-policy-config", &ReplayFlags::router_policy_config, "PATH",
             "Classes of the KV router's queue, a YAML file (default: DYN_ROUTER_POLICY_CONFIG)"),
    TextFlag("--model-name", &ReplayFlags::model_name, "NAME",
             "Model whose profile of the policy file applies"),
    TextFlag("--router-seed", &ReplayFlags::router_seed, "SEED",
             "Seed of ties and sampling (default 42)"),
    TextFlag("--kv-event-lag-ms", &ReplayFlags::kv_event_lag_ms, "MS",
             "Delay until the KV router sees what caches hold (default 0)"),
    TextFlag("--placements", &ReplayFlags::placements, "REPORT",
             "Repeat the routing decisions of a report with per-request rows"),
};

constexpr std::array kReport = {
    TextFlag("--report-json", &ReplayFlags::report_json, "PATH",
             "Report file, or a folder for it (default dynamo_replay_report_<time>.json)"),
    TextFlag("--report-jsonl", &ReplayFlags::report_jsonl, "PATH",
             "One line per request (traces only)"),
    TextFlag("--report-html", &ReplayFlags::report_html, "PATH",
             "One self-contained page with charts and a timeline of the run"),
    TextFlag("--trace-out", &ReplayFlags::trace_out, "PATH",
             "Requests and passes as a trace for ui.perfetto.dev or chrome://tracing"),
    TextFlag("--sla-ttft-ms", &ReplayFlags::sla_ttft_ms, "MS",
             "Goodput bound on the time to the first token"),
    TextFlag("--sla-itl-ms", &ReplayFlags::sla_itl_ms, "MS",
             "Goodput bound on the mean gap between tokens"),
    TextFlag("--sla-e2e-ms", &ReplayFlags::sla_e2e_ms, "MS", "Goodput bound on the whole request"),
    TextFlag("--telemetry-sample-interval-ms", &ReplayFlags::telemetry_sample_interval_ms, "MS",
             "Virtual time between samples (default 1000)"),
    TextFlag("--telemetry-jsonl", &ReplayFlags::telemetry_jsonl, "PATH", "One line per sample"),
};

constexpr std::array kGroups = {Group("Trace", kTrace),     Group("Synthetic traffic", kSynthetic),
                                Group("Load", kLoad),       Group("Deployment", kDeployment),
                                Group("Routing", kRouting), Group("Report", kReport)};

}  // namespace

void AddReplayOptions(CLI::App& command, ReplayFlags& flags) {
  command.add_option("trace_files", flags.trace_files, "Trace file to replay; several for dynamo")
      ->type_name("FILE")
      ->group("Trace");
  for (const Group& group : kGroups) {
    for (const TextFlag& flag : group.flags) {
      ReplayFlags::Text* target = &(flags.*flag.member);
      command
          .add_option_function<std::string>(
              flag.name, [target](const std::string& text) { *target = text; }, flag.help)
          ->type_name(flag.value)
          ->take_last()
          ->group(group.title);
    }
  }
  command
      .add_flag("--capture-per-request", flags.capture_per_request,
                "Adds a row per request to the report")
      ->group("Report");
  command
      .add_flag("--capture-telemetry", flags.capture_telemetry,
                "Adds telemetry samples to the report")
      ->group("Report");
  command
      .add_flag("--capture-routing", flags.capture_routing,
                "Adds all candidates of every routing decision to the rows")
      ->group("Report");
  if (const char* file = std::getenv("DYN_ROUTER_POLICY_CONFIG");
      file != nullptr && *file != '\0') {
    flags.router_policy_default = file;
  }
  command
      .add_flag("--pass-by-pass", flags.pass_by_pass,
                "Simulates every pass on its own; slower, with the same results")
      ->group("Report");
  for (const scenario::PerfModelFlag& flag : scenario::PerfModelFlags()) {
    command
        .add_option_function<std::string>(
            flag.name,
            [&flags, &flag](const std::string& value) {
              flags.perf_model.emplace_back(flag.name, value);
            },
            "Deployment whose prefill times the KV router predicts "
            "with (router_prefill_load_model ais)")
        ->take_last()
        ->type_name(flag.number ? "N" : "NAME")
        ->group("Routing");
  }
  // Known names of later versions: not in the help, refused when given.
  for (const scenario::UnavailableFlag& flag : scenario::UnavailableFlags()) {
    const std::string name(flag.name);
    command
        .add_option_function<std::string>(
            name, [&flags, name](const std::string&) { flags.unavailable.push_back(name); })
        ->take_last()
        ->group("");
  }
}

Result<ReplayFlags> ParseReplayArguments(std::vector<std::string> arguments) {
  CLI::App command;
  ReplayFlags flags;
  AddReplayOptions(command, flags);
  DYNO_TRY_VOID(ParseArguments(command, std::move(arguments)));
  return flags;
}

}  // namespace dynosim::cli
