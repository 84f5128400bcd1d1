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
#include "live/serve_parts.h"
#include "live/worker_link.h"
#include "live/worker_metrics.h"
#include "router/registry.h"
#include "router/router.h"

namespace dynosim::live {

Result<void> Serve(const ServeOptions& options) {
  const WorkerOptions& worker = options.worker;
  Frontend* handler = nullptr;
  HttpServer server(options.http,
                    [&](const std::shared_ptr<Exchange>& exchange, HttpRequest&& request) {
                      handler->Handle(exchange, std::move(request));
                    });
  DYNO_TRY_VOID(server.Listen());
  DYNO_TRY(const Publishers publishers, OpenPublishers(worker.ports, worker.engine.dp_size));
  Dispatcher dispatcher(options.router, options.frontend.output.seed);
  dispatcher.limits() = options.limits;
  EventQueue queue(server, dispatcher);
  const router::PoolShape shape = {.workers = worker.workers,
                                   .ranks = worker.engine.dp_size,
                                   .block_size = worker.engine.block_size,
                                   .max_batched_tokens = worker.engine.max_num_batched_tokens,
                                   .pool_blocks = worker.engine.num_gpu_blocks};
  std::unique_ptr<router::Router> policy;
  if (options.policy) {
    policy = router::MakeRouter(*options.policy, shape, router::PoolRole::kAggregated);
  }
  std::function<void(std::vector<KvChange>&&)> deliver_kv;
  if (policy != nullptr && policy->WantsEvents()) {
    deliver_kv = [&](std::vector<KvChange>&& changes) { queue.PushKv(std::move(changes)); };
  }
  EngineHost host(
      {.engine = worker.engine,
       .workers = worker.workers,
       .make_up_lateness = worker.make_up_lateness,
       .kv_events = publishers.kv_events.get(),
       .pass_metrics = publishers.pass_metrics.get(),
       .positional_kv_events = worker.ports.positional,
       .startup_ms = worker.startup_ms,
       .deliver = [&](std::vector<StreamEvent>&& batch) { queue.Push(std::move(batch)); },
       .deliver_kv = std::move(deliver_kv)});
  if (policy != nullptr) {
    dispatcher.UseRouter(std::move(policy), shape, [&] { return host.clock().NowMs(); });
  }
  for (std::uint32_t id = 0; id < worker.workers; ++id) {
    dispatcher.AddWorker(
        std::make_unique<LocalLink>(host, id, MakeCard(worker.engine, std::to_string(id))));
  }
  Frontend frontend(
      options.frontend, dispatcher, [&] { return host.clock().NowMs(); },
      [&](MetricsText& page) {
        for (std::uint32_t id = 0; id < worker.workers; ++id) {
          WriteWorkerMetrics(host.Stats(id), worker.engine, std::to_string(id), page);
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
