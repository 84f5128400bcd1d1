// SPDX-License-Identifier: Apache-2.0
// The live commands: `serve` has frontend, router and mock workers in one process; `mocker` and
// `frontend` have them in several, which find each other in a directory or by a list.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/settings.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/etcd_store.h"
#include "live/frontend.h"
#include "live/handoff_coordinator.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/serve_parts.h"
#include "live/worker_link.h"
#include "router/config.h"

namespace dynosim::live {

// Called once requests are accepted, with the bound port and a function that ends the server from
// any thread. May be empty.
using OnListening = std::function<void(std::uint16_t port, std::function<void()> stop)>;

// The workers of a process.
struct WorkerOptions {
  engine::EngineSettings engine{};
  std::uint32_t workers = 1;
  std::optional<HandoffOptions> pools{};  // instead of them
  bool keep_lateness = false;
  double startup_ms = 0.0;
  double handoff_timeout_ms = kHandoffTimeoutMs;
  EventPorts ports;

  // All workers in order, those of a prefill pool first.
  std::uint32_t count() const {
    return pools ? pools->prefill_workers + pools->decode_workers : workers;
  }
  const engine::EngineSettings& engine_of(std::uint32_t worker) const {
    if (!pools) {
      return engine;
    }
    return worker < pools->prefill_workers ? pools->prefill : pools->decode;
  }
  // "0", "1", ... or "prefill-0", ..., "decode-0", ...
  std::string name_of(std::uint32_t worker) const;
  std::vector<std::uint32_t> Ranks() const;
  // What requests are sent to: each worker, or both pools together.
  std::vector<WorkerCard> Cards(const std::string& prefix) const;
  // Without the functions that receive events.
  HostOptions Host(const Publishers& publishers) const;
};

struct ServeOptions {
  WorkerOptions worker;
  RouterMode router = RouterMode::kRoundRobin;
  std::optional<router::RouterSettings> policy{};  // a policy of the router module instead
  BusyLimits limits;
  FrontendOptions frontend;
  HttpOptions http;
  double drain_ms = 5000.0;  // how long streams may go on after the first signal
  OnListening on_listening;
};

struct MockerOptions {
  WorkerOptions worker;
  std::string model = "mock";
  HttpOptions http;
  std::string discovery_dir;  // empty: not there
  std::optional<EtcdOptions> etcd{};
  std::string advertise_host;  // empty: the host that is bound
  OnListening on_listening;
};

struct FrontendServerOptions {
  RouterMode router = RouterMode::kRoundRobin;
  std::optional<router::RouterSettings> policy{};  // a policy of the router module instead
  BusyLimits limits;
  FrontendOptions frontend;
  HttpOptions http;
  std::string discovery_dir;  // empty: none
  std::optional<EtcdOptions> etcd{};
  std::vector<HttpAddress> addresses;
  double drain_ms = 5000.0;
  OnListening on_listening;
};

// Each serves until a signal and returns after the drain, and fails at once when its port is taken.
Result<void> Serve(const ServeOptions& options);
Result<void> RunMocker(const MockerOptions& options);
Result<void> RunFrontend(const FrontendServerOptions& options);

}  // namespace dynosim::live
