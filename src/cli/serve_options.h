// SPDX-License-Identifier: Apache-2.0
// Flags of the live commands, and how they become settings (chapter 95, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/engine_flags.h"
#include "live/dispatcher.h"
#include "live/frontend.h"
#include "live/http_server.h"
#include "live/serve.h"

namespace CLI {
class App;
}

namespace dynosim::cli {

// Flags of a process that has workers.
struct WorkerFlags {
  EngineFlags engine;
  std::optional<double> startup_time_s;
  std::string replay_form = "with-topic";
  std::string event_form = "map";
  std::optional<std::string> prefill_engine, decode_engine;  // JSON text, or files
  std::optional<std::uint32_t> workers, prefill_workers, decode_workers;
  std::optional<std::string> disaggregation_mode;  // agg, prefill or decode
  bool is_prefill = false, is_decode = false;
  std::optional<double> handoff_timeout_ms;
  std::string router_mode = "round-robin";
  std::string router_config;
  live::WorkerOptions options;
};

// Flags of a process that has the HTTP API.
struct ApiFlags {
  std::string tokenizer;                       // empty: the built-in one
  std::string tokenizer_flag = "--tokenizer";  // that it came from
  std::string reasoning;
  std::string response_replay_path;
  double failure_rate = 0.0;
  std::vector<std::string> failure_types;
  live::FrontendOptions options;
  live::BusyLimits limits;
  double drain_ms = 5000.0;
};

struct ListenFlags {
  live::HttpOptions options;
  std::uint64_t body_limit_mb = 192;
  std::uint32_t header_limit_kb = 64;
};

struct ServeFlags {
  WorkerFlags worker;
  ApiFlags api;
  ListenFlags listen;
};

// Where processes find each other.
struct DiscoveryFlags {
  std::string backend;  // empty: by what is given
  std::string folder;
  std::string etcd;
  std::string etcd_prefix;
};

struct MockerFlags {
  WorkerFlags worker;
  ListenFlags listen;
  std::string model = "mock";
  DiscoveryFlags discovery;
  std::string advertise_host;
};

struct FrontendFlags {
  ApiFlags api;
  std::string router_mode = "round-robin";
  std::string router_config;
  ListenFlags listen;
  DiscoveryFlags discovery;
  std::vector<std::string> workers;
};

// `flags` must outlive the command.
void AddServeFlags(CLI::App& command, ServeFlags& flags);
void AddMockerFlags(CLI::App& command, MockerFlags& flags);
void AddFrontendFlags(CLI::App& command, FrontendFlags& flags);

Result<live::ServeOptions> ReadServeFlags(const ServeFlags& flags);
Result<live::MockerOptions> ReadMockerFlags(const MockerFlags& flags);
Result<live::FrontendServerOptions> ReadFrontendFlags(const FrontendFlags& flags);

}  // namespace dynosim::cli
