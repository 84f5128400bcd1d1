// SPDX-License-Identifier: Apache-2.0
#include "live/serve.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/frontend.h"
#include "live/http_server.h"
#include "live/metrics.h"
#include "live/router_setup.h"
#include "live/serve_parts.h"
#include "live/worker_link.h"
#include "live/worker_metrics.h"

namespace dynosim::live {

Result<void> Serve(const ServeOptions& options) {
  const WorkerOptions& worker = options.worker;
  Frontend* handler = nullptr;
  HttpServer server(options.http,
                    [&](const std::shared_ptr<Exchange>& exchange, HttpRequest&& request) {
                      handler->Handle(exchange, std::move(request));
                    });
  DYNO_TRY_VOID(server.Listen());
  DYNO_TRY(const Publishers publishers, OpenPublishers(worker.ports, worker.Ranks()));
  Dispatcher dispatcher(options.router, options.frontend.output.seed);
  dispatcher.set_limits(options.limits);
  EventQueue queue(server, dispatcher);
  HostOptions host_options = worker.Host(publishers);
  host_options.deliver = [&](std::vector<StreamEvent>&& batch) { queue.Push(std::move(batch)); };
  const bool routed = options.policy && !worker.pools;
  if (routed && options.policy->mode == "kv_router" && options.policy->kv.use_kv_events) {
    host_options.deliver_kv = [&](std::vector<KvChange>&& changes) {
      queue.PushKv(std::move(changes));
    };
  }
  EngineHost host(std::move(host_options));
  std::uint32_t place = 0;
  for (WorkerCard& card : worker.Cards("")) {
    dispatcher.AddWorker(std::make_unique<LocalLink>(host, place++, std::move(card)));
  }
  if (routed) {
    dispatcher.UsePolicy(RouterOf(*options.policy, worker.engine), false,
                         [&] { return host.clock().NowMs(); });
  }
  Frontend frontend(
      options.frontend, dispatcher, [&] { return host.clock().NowMs(); },
      [&](MetricsText& page) {
        for (std::uint32_t id = 0; id < worker.count(); ++id) {
          WriteWorkerMetrics(host.Stats(id), worker.engine_of(id), worker.name_of(id), page);
        }
      });
  frontend.set_ready([&] { return host.started_up(); });
  handler = &frontend;
  Shutdown shutdown(server, [&] { frontend.Drain(); }, options.drain_ms);
  server.OnSignal([&] { shutdown.OnSignal(); });
  host.Start();
  if (options.on_listening) {
    options.on_listening(server.port(), [&] { server.Post([&] { server.Stop(); }); });
  }
  server.Run();
  queue.Close();
  host.Stop();
  return {};
}

}  // namespace dynosim::live
