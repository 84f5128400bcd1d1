// SPDX-License-Identifier: Apache-2.0
// The frontend process: HTTP API and router over workers of other processes.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "live/clock.h"
#include "live/dispatcher.h"
#include "live/frontend.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/metrics.h"
#include "live/remote_handoffs.h"
#include "live/serve.h"
#include "live/serve_parts.h"
#include "live/worker_watch.h"

namespace dynosim::live {

Result<void> RunFrontend(const FrontendServerOptions& options) {
  const MonotonicClock clock;
  Frontend* handler = nullptr;
  HttpServer server(options.http,
                    [&](const std::shared_ptr<Exchange>& exchange, HttpRequest&& request) {
                      handler->Handle(exchange, std::move(request));
                    });
  DYNO_TRY_VOID(server.Listen());
  Dispatcher dispatcher(options.router, options.frontend.output.seed);
  Dispatcher prefill(options.router, options.frontend.output.seed);
  RemoteHandoffs handoffs(prefill, dispatcher, [&] { return clock.NowMs(); });
  dispatcher.set_limits(options.limits);
  Frontend frontend(
      options.frontend, dispatcher, [&] { return clock.NowMs(); },
      [&](MetricsText& page) {
        if (!dispatcher.WantsKvEvents() && !prefill.WantsKvEvents()) {
          return;
        }
        const auto count = [&](const char* type, std::uint64_t value) {
          page.Counter("dynamo_component_kv_cache_events_applied",
                       "KV events of workers that the router has been told",
                       {{"event_type", type}, {"status", "ok"}}, static_cast<double>(value));
        };
        count("stored", dispatcher.kv_stored() + prefill.kv_stored());
        count("removed", dispatcher.kv_removed() + prefill.kv_removed());
      });
  handler = &frontend;
  WorkerWatch watch(server, dispatcher, prefill, options.frontend.model);
  if (options.policy) {
    for (Dispatcher* pool : {&dispatcher, &prefill}) {
      pool->UsePolicy(*options.policy, true, [&] { return clock.NowMs(); });
    }
    if (options.policy->mode == "kv_router" && options.policy->kv.use_kv_events) {
      watch.FollowKvEvents();
    }
  }
  for (const HttpAddress& address : options.addresses) {
    watch.WatchAddress(address);
  }
  if (!options.discovery_dir.empty()) {
    watch.WatchDirectory(options.discovery_dir);
  }
  if (options.etcd) {
    watch.WatchEtcd(*options.etcd);
  }
  Shutdown shutdown(server, [&] { frontend.Drain(); }, options.drain_ms);
  server.OnSignal([&] { shutdown.OnSignal(); });
  if (options.on_listening) {
    options.on_listening(server.port(), [&] { server.Post([&] { server.Stop(); }); });
  }
  server.Run();
  return {};
}

}  // namespace dynosim::live
