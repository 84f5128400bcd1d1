// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_options.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/json_argument.h"
#include "base/result.h"
#include "cli/engine_flags.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "live/dispatcher.h"
#include "live/etcd_store.h"
#include "live/fault_injection.h"
#include "live/frontend.h"
#include "live/handoff_coordinator.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/output_planner.h"
#include "live/serve.h"
#include "live/serve_parts.h"
#include "live/tokenizer_file.h"
#include "router/config.h"
#include "scenario/engine_pair.h"

namespace dynosim::cli {
namespace {

constexpr const char* kWorkers = "Workers";
constexpr const char* kPools =
    "Prefill and decode pools, instead of engine flags and --num-workers";
constexpr const char* kRoles = "Prefill and decode workers as processes of their own";
constexpr const char* kServer = "Server";
constexpr const char* kApi = "API";
constexpr const char* kFaults = "Faults";
constexpr const char* kEvents = "Events over ZeroMQ: one first port per worker, rank r adds r";
constexpr const char* kOverload =
    "Overload: a request is refused when every worker is over a limit";

template <class T>
CLI::Option* Add(CLI::App& command, const char* group, const char* name, T& value, const char* type,
                 const char* help) {
  return command.add_option(name, value, help)->type_name(type)->group(group);
}

void AddListenFlags(CLI::App& command, ListenFlags& f) {
  Add(command, kServer, "--http-host", f.options.host, "ADDRESS", "Default 127.0.0.1");
  Add(command, kServer, "--http-port", f.options.port, "PORT", "Default 8000; 0: any free one");
  Add(command, kServer, "--http-body-limit-mb", f.body_limit_mb, "MB",
      "Longest request body (default 192)")
      ->check(CLI::Range(1, 4096));
  Add(command, kServer, "--http-header-limit-kb", f.header_limit_kb, "KB",
      "Longest request header (default 64)")
      ->check(CLI::Range(1, 4096));
  const auto timeout = [&](const char* name, double& value, const char* help) {
    Add(command, kServer, name, value, "MS", help)->check(CLI::PositiveNumber);
  };
  timeout("--http-header-timeout-ms", f.options.header_timeout_ms,
          "How long a request header may take (default 30000); then 408");
  timeout("--http-body-timeout-ms", f.options.body_timeout_ms,
          "Longest pause within a request body (default 60000); then 408");
  timeout("--http-idle-timeout-ms", f.options.idle_timeout_ms,
          "How long a connection without a request stays open (default 75000)");
}

void AddWorkerFlags(CLI::App& command, WorkerFlags& f) {
  AddEngineFlags(command, f.engine);
  live::WorkerOptions& o = f.options;
  const CLI::Range count(1, 4096);
  Add(command, kWorkers, "--num-workers", f.workers, "N", "Mock workers (default 1)")->check(count);
  Add(command, kPools, "--prefill-engine-args", f.prefill_engine, "JSON",
      "Engine of the prefill workers, with \"worker_type\": \"prefill\": JSON text or a file");
  Add(command, kPools, "--decode-engine-args", f.decode_engine, "JSON",
      "Engine of the decode workers, with \"worker_type\": \"decode\"");
  Add(command, kPools, "--num-prefill-workers", f.prefill_workers, "N", "Default 1")->check(count);
  Add(command, kPools, "--num-decode-workers", f.decode_workers, "N", "Default 1")->check(count);
  Add(command, kWorkers, "--startup-time", f.startup_time_s, "S",
      "Workers start working after this time; requests wait")
      ->check(CLI::NonNegativeNumber);
  command
      .add_flag("--keep-lateness", o.keep_lateness,
                "A pass starts when the worker woke up, not at the modelled end of the one before")
      ->group(kWorkers);
  Add(command, kEvents, "--zmq-kv-events-ports", o.ports.kv_events, "PORTS", "KV events")
      ->delimiter(',');
  Add(command, kEvents, "--zmq-replay-ports", o.ports.kv_replay, "PORTS", "Replay of KV events")
      ->delimiter(',');
  Add(command, kEvents, "--forward-pass-metrics-ports", o.ports.pass_metrics, "PORTS",
      "Forward-pass metrics")
      ->delimiter(',');
  Add(command, kEvents, "--zmq-host", o.ports.host, "ADDRESS",
      "Where the sockets bind (default 127.0.0.1)");
  Add(command, kEvents, "--zmq-topic", o.ports.topic, "TOPIC",
      "First frame (default empty); {worker} is replaced");
  Add(command, kEvents, "--zmq-replay-form", f.replay_form, "FORM",
      "with-topic (default) or without-topic, as vLLM itself replies")
      ->check(CLI::IsMember({"with-topic", "without-topic"}));
  Add(command, kEvents, "--zmq-event-form", f.event_form, "FORM",
      "map (default) or positional, as older vLLM releases")
      ->check(CLI::IsMember({"map", "positional"}));
}

void AddOutputFlags(CLI::App& command, ApiFlags& f) {
  live::FrontendOptions& o = f.options;
  Add(command, kApi, "--seed", o.output.seed, "SEED", "Seed of the generated tokens (default 42)");
  Add(command, kApi, "--default-max-tokens", o.default_max_tokens, "N",
      "Output limit of requests without one (default 128; text completions 16 at most)")
      ->check(CLI::PositiveNumber);
  command.add_flag("--echo", o.output.echo, "Answer with the prompt instead of random words")
      ->group(kApi);
  Add(command, kApi, "--reasoning", f.reasoning, "JSON",
      "{start_thinking_token_id, end_thinking_token_id, thinking_ratio}: reasoning tokens first");
  Add(command, kApi, "--response-replay-trace-path", f.response_replay_path, "PATH",
      "Mooncake rows with output_token_ids, which requests select by annotation");
}

void AddApiFlags(CLI::App& command, ApiFlags& f) {
  live::FrontendOptions& o = f.options;
  Add(command, kApi, "--model-name", o.model, "NAME", "Served model (default mock)");
  Add(command, kApi, "--tokenizer", f.tokenizer, "PATH",
      "tokenizer.json of a model, or a folder with one, instead of the built-in tokenizer; only in "
      "programs built with it");
  AddOutputFlags(command, f);
  command
      .add_flag("--require-max-tokens", o.require_max_tokens,
                "Refuse requests without an output limit")
      ->group(kApi);
  command.add_flag("--strict-fields", o.strict_fields, "Refuse unknown request fields")
      ->group(kApi);
  command.add_flag("--sglang-generate", o.sglang_generate, "Offer SGLang's native /generate")
      ->group(kApi);
  Add(command, kApi, "--max-loras", o.max_loras, "N", "Adapters loaded at a time (default 16)");
  Add(command, kApi, "--metrics-prefix", o.metrics_prefix, "NAME",
      "Of the frontend's metrics (default dynamo_frontend)");
  Add(command, kApi, "--drain-timeout-ms", f.drain_ms, "MS",
      "How long streams may go on after the first signal (default 5000)")
      ->check(CLI::NonNegativeNumber);
  Add(command, kFaults, "--failure-injection-rate", f.failure_rate, "PERCENT",
      "Share of the requests that fail, 0 to 100")
      ->check(CLI::Range(0.0, 100.0));
  Add(command, kFaults, "--failure-types", f.failure_types, "NAMES",
      "Comma list: rate_limit, invalid_api_key, context_length, server_error, invalid_request, "
      "model_not_found (default all)")
      ->delimiter(',');
  Add(command, kOverload, "--active-decode-blocks-threshold", f.limits.active_decode_blocks,
      "SHARE", "Share of a worker's KV blocks that decoding requests hold, 0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  Add(command, kOverload, "--active-prefill-tokens-threshold", f.limits.active_prefill_tokens, "N",
      "Prompt tokens of requests without a first token");
  Add(command, kOverload, "--active-prefill-tokens-threshold-frac",
      f.limits.active_prefill_tokens_frac, "RATIO",
      "The same as a multiple of --max-num-batched-tokens")
      ->check(CLI::NonNegativeNumber);
  Add(command, kOverload, "--max-requests-per-worker", f.limits.requests, "N",
      "Requests in flight");
  Add(command, kOverload, "--overload-status", o.overload_status, "CODE", "529 (default) or 503")
      ->check(CLI::IsMember({503, 529}));
}

void AddDiscoveryFlags(CLI::App& command, DiscoveryFlags& f) {
  constexpr const char* kDiscovery = "Discovery";
  Add(command, kDiscovery, "--discovery-backend", f.backend, "NAME",
      "directory or etcd (default: by what is given)")
      ->check(CLI::IsMember({"directory", "file", "etcd"}));
  Add(command, kDiscovery, "--discovery-dir", f.folder, "PATH",
      "Directory that workers and frontends share");
  Add(command, kDiscovery, "--etcd-endpoint", f.etcd, "URL",
      "etcd v3, http://<host>:<port>, instead of a directory");
  Add(command, kDiscovery, "--etcd-prefix", f.etcd_prefix, "TEXT",
      "Of the keys in etcd (default dynosim/workers/)");
}

// Neither a directory nor etcd is given: no discovery.
struct Discovery {
  std::string folder;
  std::optional<live::EtcdOptions> etcd;
};

Result<Discovery> ReadDiscovery(const DiscoveryFlags& f) {
  if (!f.folder.empty() && !f.etcd.empty()) {
    return UsageError("--etcd-endpoint", "cannot be combined with --discovery-dir");
  }
  if (f.backend == "etcd" ? f.etcd.empty() : !f.backend.empty() && f.folder.empty()) {
    return UsageError("--discovery-backend", f.backend == "etcd"
                                                 ? "etcd needs --etcd-endpoint"
                                                 : "directory needs --discovery-dir");
  }
  if (!f.etcd_prefix.empty() && f.etcd.empty()) {
    return UsageError("--etcd-prefix", "needs --etcd-endpoint");
  }
  Discovery out = {.folder = f.folder, .etcd = std::nullopt};
  if (!f.etcd.empty()) {
    live::EtcdOptions& etcd = out.etcd.emplace();
    DYNO_TRY(etcd.endpoint, live::ResolveHttpAddress("--etcd-endpoint", f.etcd));
    if (!f.etcd_prefix.empty()) {
      etcd.prefix = f.etcd_prefix;
    }
  }
  return out;
}

struct ModeName {
  std::string_view name, policy;
  std::optional<live::RouterMode> follows;  // set: also for workers that come and go
};
constexpr std::array kModes = {
    ModeName{"round-robin", "round_robin", live::RouterMode::kRoundRobin},
    ModeName{"random", "random", live::RouterMode::kRandom},
    ModeName{"least-loaded", "least_loaded", live::RouterMode::kLeastLoaded},
    ModeName{"power-of-two", "power_of_two", std::nullopt},
    ModeName{"kv", "kv_router", std::nullopt},
};

Result<ModeName> ReadMode(const std::string& given) {
  std::string name = given;
  std::ranges::replace(name, '_', '-');
  const auto* found = std::ranges::find_if(kModes, [&](const ModeName& mode) {
    return mode.name == name || (mode.name == "kv" && name == "kv-router");
  });
  if (found == kModes.end()) {
    return UsageError(
        "--router-mode",
        "must be round-robin, random, least-loaded, power-of-two or kv, got " + given);
  }
  return *found;
}

// A policy of the router module.
Result<router::RouterSettings> ReadPolicy(const ModeName& mode, const std::string& config,
                                          std::uint64_t seed) {
  router::RouterSettings settings;
  settings.mode = std::string(mode.policy);
  settings.live = true;
  settings.seed = seed;
  if (config.empty()) {
    return settings;
  }
  if (mode.name != "kv") {
    return UsageError("--router-config", "needs --router-mode kv");
  }
  DYNO_TRY(const Json json, JsonOfArgument("--router-config", config));
  DYNO_TRY(settings.kv, router::DecodeKvRouterConfig(json, "--router-config"));
  if (settings.kv.predict_prefill) {
    return UsageError("--router-config",
                      "router_prefill_load_model: only none is supported by serve");
  }
  return settings;
}

Result<live::HandoffOptions> ReadPools(const WorkerFlags& f, std::uint64_t seed) {
  using scenario::kDecodeEngineFlag;
  using scenario::kPrefillEngineFlag;
  if (!f.prefill_engine || !f.decode_engine) {
    return UsageError("", "--prefill-engine-args and --decode-engine-args must be given together");
  }
  if (AnyEngineFlag(f.engine) || f.workers) {
    return UsageError(f.workers ? "--num-workers" : "engine flags",
                      "cannot be combined with --prefill-engine-args and --decode-engine-args");
  }
  live::HandoffOptions out;
  DYNO_TRY(out.prefill, ReadEngineJson(kPrefillEngineFlag, *f.prefill_engine));
  DYNO_TRY(out.decode, ReadEngineJson(kDecodeEngineFlag, *f.decode_engine));
  using engine::WorkerRole;
  DYNO_TRY_VOID(scenario::CheckEngineRole(kPrefillEngineFlag, out.prefill, WorkerRole::kPrefill));
  DYNO_TRY_VOID(scenario::CheckEngineRole(kDecodeEngineFlag, out.decode, WorkerRole::kDecode));
  DYNO_TRY_VOID(scenario::CheckEnginePair(out.prefill, out.decode));
  out.prefill_workers = f.prefill_workers.value_or(1);
  out.decode_workers = f.decode_workers.value_or(1);
  DYNO_TRY(const ModeName mode, ReadMode(f.router_mode));
  DYNO_TRY(out.router, ReadPolicy(mode, f.router_config, seed));
  return out;
}

Result<live::HttpOptions> ReadListenFlags(const ListenFlags& flags) {
  live::HttpOptions out = flags.options;
  out.body_bytes_max = flags.body_limit_mb << 20U;
  out.header_bytes_max = flags.header_limit_kb << 10U;
  return out;
}

// One first port for each of `workers`, from which on `ranks` ports are used.
Result<void> CheckPorts(const char* flag, const std::vector<std::uint16_t>& ports,
                        std::span<const std::uint32_t> ranks) {
  if (!ports.empty() && ports.size() != ranks.size()) {
    return UsageError(flag, fmt::format("needs one port per worker: got {} for {} workers",
                                        ports.size(), ranks.size()));
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i] == 0 || std::uint32_t{ports[i]} + ranks[i] > 65536) {
      return UsageError(
          flag, fmt::format("ports must be from 1 to 65535 for every rank, got {}", ports[i]));
    }
  }
  return {};
}

// KV events are those of workers that compute prompts.
Result<void> CheckEventPorts(const live::WorkerOptions& o) {
  const std::vector<std::uint32_t> all = o.Ranks();
  const auto prompts = std::span(all).first(o.pools ? o.pools->prefill_workers : o.workers);
  DYNO_TRY_VOID(CheckPorts("--zmq-kv-events-ports", o.ports.kv_events, prompts));
  DYNO_TRY_VOID(CheckPorts("--zmq-replay-ports", o.ports.kv_replay, prompts));
  DYNO_TRY_VOID(CheckPorts("--forward-pass-metrics-ports", o.ports.pass_metrics, all));
  if (!o.ports.kv_replay.empty() && o.ports.kv_events.empty()) {
    return UsageError("--zmq-replay-ports", "needs --zmq-kv-events-ports");
  }
  if (!o.pools && !o.ports.kv_events.empty() &&
      o.engine.worker_role == engine::WorkerRole::kDecode) {
    return UsageError("--zmq-kv-events-ports",
                      "KV events are those of prefill workers; this is a decode worker");
  }
  if (!o.ports.kv_events.empty() && !o.engine_of(0).enable_prefix_caching) {
    return UsageError("--zmq-kv-events-ports", "needs prefix caching");
  }
  return {};
}

// The role that flags give to the workers of a process; nothing when they say nothing.
Result<std::optional<engine::WorkerRole>> ReadRole(const WorkerFlags& f) {
  using engine::WorkerRole;
  const char* alias = f.is_prefill ? "--is-prefill-worker" : "--is-decode-worker";
  if (f.is_prefill && f.is_decode) {
    return UsageError(alias, "cannot be combined with --is-decode-worker");
  }
  if ((f.is_prefill || f.is_decode) && f.disaggregation_mode) {
    return UsageError(alias, "cannot be combined with --disaggregation-mode");
  }
  if (f.is_prefill || f.disaggregation_mode == "prefill") {
    return WorkerRole::kPrefill;
  }
  if (f.is_decode || f.disaggregation_mode == "decode") {
    return WorkerRole::kDecode;
  }
  return f.disaggregation_mode ? std::optional(WorkerRole::kAggregated) : std::nullopt;
}

// The engine of workers that may be the prefill or decode workers of other processes' requests.
Result<engine::EngineSettings> ReadEngineOfRole(const WorkerFlags& flags) {
  using engine::WorkerRole;
  DYNO_TRY(const std::optional<WorkerRole> role, ReadRole(flags));
  EngineFlags f = flags.engine;
  if (role) {
    f.worker_type = std::string(engine::WorkerRoleName(*role));
  }
  DYNO_TRY(engine::EngineSettings out, ReadEngineFlags(f));
  if (role && *role != out.worker_role) {
    return UsageError(
        "--disaggregation-mode",
        fmt::format("the flags say {}, worker_type in --extra-engine-args says {}",
                    engine::WorkerRoleName(*role), engine::WorkerRoleName(out.worker_role)));
  }
  if (out.worker_role != WorkerRole::kPrefill &&
      (f.kv_transfer_bandwidth || f.kv_transfer_timing_mode || f.kv_bytes_per_token)) {
    return UsageError(f.kv_transfer_bandwidth     ? "--kv-transfer-bandwidth"
                      : f.kv_transfer_timing_mode ? "--kv-transfer-timing-mode"
                                                  : "--kv-bytes-per-token",
                      "is a property of prefill workers: needs --disaggregation-mode prefill");
  }
  if (flags.handoff_timeout_ms && out.worker_role == WorkerRole::kAggregated) {
    return UsageError("--handoff-session-timeout-ms",
                      "needs --disaggregation-mode prefill or decode");
  }
  return out;
}

// `roles`: the workers may be those of a prefill or decode process.
Result<live::WorkerOptions> ReadWorkerFlags(const WorkerFlags& flags, std::uint64_t seed,
                                            bool roles) {
  live::WorkerOptions out = flags.options;
  out.handoff_timeout_ms = flags.handoff_timeout_ms.value_or(out.handoff_timeout_ms);
  out.workers = flags.workers.value_or(1);
  if (flags.prefill_engine || flags.decode_engine) {
    DYNO_TRY(const std::optional<engine::WorkerRole> role, ReadRole(flags));
    if (role || flags.handoff_timeout_ms) {
      return UsageError(role ? "--disaggregation-mode" : "--handoff-session-timeout-ms",
                        "cannot be combined with --prefill-engine-args and --decode-engine-args");
    }
    DYNO_TRY(out.pools, ReadPools(flags, seed));
  } else {
    if (flags.prefill_workers || flags.decode_workers) {
      return UsageError(flags.prefill_workers ? "--num-prefill-workers" : "--num-decode-workers",
                        "needs --prefill-engine-args and --decode-engine-args");
    }
    DYNO_TRY(out.engine, ReadEngineOfRole(flags));
    if (!roles && out.engine.worker_role != engine::WorkerRole::kAggregated) {
      return UsageError("--extra-engine-args",
                        "worker_type must be aggregated, got " +
                            std::string(engine::WorkerRoleName(out.engine.worker_role)) +
                            "; pools are given with --prefill-engine-args and "
                            "--decode-engine-args");
    }
  }
  DYNO_TRY_VOID(CheckEventPorts(out));
  out.ports.replay_topic_frame = flags.replay_form == "with-topic";
  out.ports.positional = flags.event_form == "positional";
  double startup_s = 0.0;
  for (std::uint32_t worker = 0; worker < out.count(); ++worker) {
    startup_s = std::max(startup_s, out.engine_of(worker).startup_time_s.value_or(0.0));
  }
  out.startup_ms = 1000.0 * flags.startup_time_s.value_or(startup_s);
  return out;
}

// What is generated on request must be in the vocabulary of a model.
Result<void> CheckOutputIds(const live::FrontendOptions& o) {
  if (!o.tokenizer) {
    return {};
  }
  const std::uint32_t end = o.tokenizer->id_end();
  if (const auto& r = o.output.reasoning; r && std::max(r->start_token, r->end_token) >= end) {
    return UsageError("--reasoning", fmt::format("token ids must be below {}, got {}", end,
                                                 std::max(r->start_token, r->end_token)));
  }
  if (o.output.replay && o.output.replay->LargestId() >= end) {
    return UsageError("--response-replay-trace-path",
                      fmt::format("output_token_ids must be below {}, got {}", end,
                                  o.output.replay->LargestId()));
  }
  return {};
}

Result<live::FrontendOptions> ReadApiFlags(const ApiFlags& flags) {
  live::FrontendOptions out = flags.options;
  if (out.model.empty()) {
    return UsageError("--model-name", "must not be empty");
  }
  DYNO_TRY(out.faults,
           live::FaultInjection::Make(flags.failure_rate, flags.failure_types, out.output.seed));
  if (!flags.failure_types.empty() && flags.failure_rate == 0.0) {
    return UsageError("--failure-types", "needs --failure-injection-rate");
  }
  if (!flags.reasoning.empty()) {
    DYNO_TRY(out.output.reasoning, live::ParseReasoning(flags.reasoning));
  }
  if (!flags.response_replay_path.empty()) {
    DYNO_TRY(out.output.replay, live::ReplayTable::Load(flags.response_replay_path));
  }
  if (!flags.tokenizer.empty()) {
    DYNO_TRY(out.tokenizer, live::OpenTokenizerFile(flags.tokenizer_flag, flags.tokenizer));
  }
  DYNO_TRY_VOID(CheckOutputIds(out));
  return out;
}

// A model in a folder brings its tokenizer along where the program can read it; then the folder may
// be given for that alone.
void UseTokenizerOfModel(ServeFlags& flags) {
  MeasuredFlags& model = flags.worker.engine.measured;
  std::error_code error;
  if (!model.model_path || !live::ReadsTokenizerFiles() ||
      !std::filesystem::is_regular_file(std::filesystem::path(*model.model_path) / "tokenizer.json",
                                        error)) {
    return;
  }
  if (flags.api.tokenizer.empty()) {
    flags.api.tokenizer = *model.model_path;
    flags.api.tokenizer_flag = "--model-path";
  }
  if (!model.on) {
    model.model_path.reset();
  }
}

}  // namespace

void AddServeFlags(CLI::App& command, ServeFlags& f) {
  AddListenFlags(command, f.listen);
  AddWorkerFlags(command, f.worker);
  AddApiFlags(command, f.api);
  Add(command, kApi, "--router-mode", f.worker.router_mode, "MODE",
      "round-robin (default), random, least-loaded, power-of-two or kv");
  Add(command, kApi, "--router-config", f.worker.router_config, "JSON",
      "Fields of the KV router as a JSON object, or a file of it");
}

void AddMockerFlags(CLI::App& command, MockerFlags& f) {
  AddListenFlags(command, f.listen);
  AddWorkerFlags(command, f.worker);
  Add(command, kRoles, "--disaggregation-mode", f.worker.disaggregation_mode, "ROLE",
      "agg (default), prefill or decode: what the workers of this process do")
      ->check(CLI::IsMember({"agg", "prefill", "decode"}));
  command
      .add_flag("--is-prefill-worker", f.worker.is_prefill,
                "The same as --disaggregation-mode prefill (deprecated)")
      ->group(kRoles);
  command
      .add_flag("--is-decode-worker", f.worker.is_decode,
                "The same as --disaggregation-mode decode (deprecated)")
      ->group(kRoles);
  AddTransferFlags(command, kRoles, f.worker.engine);
  Add(command, kRoles, "--handoff-session-timeout-ms", f.worker.handoff_timeout_ms, "MS",
      "A request that is not handed over after this time fails (default 300000)")
      ->check(CLI::PositiveNumber);
  Add(command, kPools, "--router-mode", f.worker.router_mode, "MODE",
      "In front of both pools: round-robin (default), random, least-loaded, power-of-two or kv");
  Add(command, kPools, "--router-config", f.worker.router_config, "JSON",
      "Fields of the KV router as a JSON object, or a file of it");
  Add(command, kWorkers, "--model-name", f.model, "NAME", "Served model (default mock)");
  AddDiscoveryFlags(command, f.discovery);
  Add(command, kServer, "--advertise-host", f.advertise_host, "ADDRESS",
      "Address that frontends connect to (default --http-host)");
}

void AddFrontendFlags(CLI::App& command, FrontendFlags& f) {
  AddListenFlags(command, f.listen);
  AddApiFlags(command, f.api);
  Add(command, kApi, "--router-mode", f.router_mode, "MODE",
      "round-robin (default), random, least-loaded, power-of-two or kv; kv follows the KV events "
      "of "
      "workers with --zmq-kv-events-ports");
  Add(command, kApi, "--router-config", f.router_config, "JSON",
      "Fields of the KV router as a JSON object, or a file of it");
  AddDiscoveryFlags(command, f.discovery);
  Add(command, kServer, "--worker", f.workers, "URL",
      "Worker process, http://<address>:<port>; may be repeated");
  Add(command, kApi, "--migration-limit", f.api.options.migration_limit, "N",
      "How often a sequence may go on at another worker when its own is lost (default 0)");
}

Result<live::ServeOptions> ReadServeFlags(const ServeFlags& given) {
  live::ServeOptions out;
  ServeFlags flags = given;
  UseTokenizerOfModel(flags);
  DYNO_TRY(out.frontend, ReadApiFlags(flags.api));
  DYNO_TRY(out.worker, ReadWorkerFlags(flags.worker, out.frontend.output.seed, false));
  DYNO_TRY(const ModeName mode, ReadMode(flags.worker.router_mode));
  DYNO_TRY(router::RouterSettings policy,
           ReadPolicy(mode, flags.worker.router_config, out.frontend.output.seed));
  if (mode.follows) {
    out.router = *mode.follows;
  } else {
    out.policy = std::move(policy);
  }
  DYNO_TRY(out.http, ReadListenFlags(flags.listen));
  out.limits = flags.api.limits;
  out.drain_ms = flags.api.drain_ms;
  return out;
}

Result<live::MockerOptions> ReadMockerFlags(const MockerFlags& flags) {
  live::MockerOptions out;
  DYNO_TRY(Discovery discovery, ReadDiscovery(flags.discovery));
  DYNO_TRY(out.worker, ReadWorkerFlags(flags.worker, 0, true));
  if (!out.worker.pools &&
      (flags.worker.router_mode != "round-robin" || !flags.worker.router_config.empty())) {
    return UsageError("--router-mode",
                      "is for pools here; the frontend chooses among whole workers");
  }
  DYNO_TRY(out.http, ReadListenFlags(flags.listen));
  out.model = flags.model;
  out.discovery_dir = std::move(discovery.folder);
  out.etcd = std::move(discovery.etcd);
  out.advertise_host = flags.advertise_host;
  return out;
}

Result<live::FrontendServerOptions> ReadFrontendFlags(const FrontendFlags& flags) {
  live::FrontendServerOptions out;
  DYNO_TRY(Discovery discovery, ReadDiscovery(flags.discovery));
  DYNO_TRY(out.frontend, ReadApiFlags(flags.api));
  DYNO_TRY(const ModeName mode, ReadMode(flags.router_mode));
  DYNO_TRY(router::RouterSettings policy,
           ReadPolicy(mode, flags.router_config, out.frontend.output.seed));
  if (mode.follows) {
    out.router = *mode.follows;
  } else {
    out.policy = std::move(policy);
  }
  DYNO_TRY(out.http, ReadListenFlags(flags.listen));
  for (const std::string& url : flags.workers) {
    DYNO_TRY(const live::HttpAddress address, live::ResolveHttpAddress("--worker", url));
    out.addresses.push_back(address);
  }
  if (out.addresses.empty() && discovery.folder.empty() && !discovery.etcd) {
    return UsageError("--discovery-dir",
                      "or --etcd-endpoint or --worker is needed: where are the workers?");
  }
  out.discovery_dir = std::move(discovery.folder);
  out.etcd = std::move(discovery.etcd);
  out.limits = flags.api.limits;
  out.drain_ms = flags.api.drain_ms;
  return out;
}

}  // namespace dynosim::cli
