// SPDX-License-Identifier: Apache-2.0
// The worker process: its HTTP side, and its entry in the discovery directory.
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"
#include "base/result.h"
#include "engine/settings.h"
#include "engine/settings_decode.h"
#include "live/api_error.h"
#include "live/discovery.h"
#include "live/dispatcher.h"
#include "live/engine_host.h"
#include "live/etcd_store.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/metrics.h"
#include "live/serve.h"
#include "live/serve_parts.h"
#include "live/worker_link.h"
#include "live/worker_metrics.h"
#include "live/worker_wire.h"

namespace dynosim::live {

namespace {

// One sequence of a frontend: its events go out as lines.
class WorkerStream final : public StreamListener,
                           public std::enable_shared_from_this<WorkerStream> {
 public:
  WorkerStream(Dispatcher& dispatcher, std::shared_ptr<Exchange> exchange)
      : dispatcher_(dispatcher), exchange_(std::move(exchange)) {}

  void Start(std::shared_ptr<const LiveRequest> request) {
    exchange_->BeginStream(200, "text/plain");
    exchange_->Flush();
    exchange_->OnGone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->ended_ = true;
        self->dispatcher_.Cancel(self->stream_);
      }
    });
    if (!exchange_->gone()) {
      // Without a router nothing is refused.
      stream_ = dispatcher_.Submit(std::move(request), shared_from_this(), 0).value_or(0);
    }
  }

  void OnEvent(std::uint32_t /*index*/, const StreamEvent& event) override {
    if (ended_) {
      return;
    }
    line_.clear();
    if (event.kind == StreamEvent::Kind::kHeld || event.kind == StreamEvent::Kind::kReserved) {
      StreamEvent numbered = event;
      numbered.amount = stream_;  // for the message that answers it
      AppendEvent(numbered, line_);
    } else {
      AppendEvent(event, line_);
    }
    exchange_->Append(line_);
    if (IsEnd(event.kind)) {
      ended_ = true;
      exchange_->EndStream();
    }
  }
  void OnBatchEnd() override {
    if (!ended_) {
      exchange_->Flush();
    }
  }

 private:
  Dispatcher& dispatcher_;
  std::shared_ptr<Exchange> exchange_;
  std::uint64_t stream_ = 0;
  std::string line_;
  bool ended_ = false;
};

class WorkerServer {
 public:
  WorkerServer(const WorkerOptions& options, Dispatcher& dispatcher, const EngineHost& host,
               std::string process)
      : options_(options),
        dispatcher_(dispatcher),
        host_(host),
        process_(std::move(process)),
        cards_(options.Cards(process_ + "-")) {}

  void Drain() { draining_ = true; }

  void Handle(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
    constexpr std::string_view kPrefix = "/v1/worker/";
    const bool get = request.method == "GET" || request.method == "HEAD";
    if (get && request.path == kCardsPath) {
      Json list(Json::Array{});
      for (const WorkerCard& card : cards_) {
        list.array().push_back(CardToJson(card));
      }
      exchange->Respond(200, kJson, DumpJson(list));
    } else if (request.method == "POST" && request.path.starts_with(kPrefix) &&
               request.path.ends_with("/streams")) {
      Begin(exchange, request);
    } else if (request.method == "POST" && request.path.starts_with(kPrefix) &&
               request.path.ends_with("/proceed")) {
      Proceed(exchange, request);
    } else if (get && request.path == "/metrics") {
      MetricsText page;
      for (std::uint32_t id = 0; id < options_.count(); ++id) {
        WriteWorkerMetrics(host_.Stats(id), options_.engine_of(id),
                           process_ + "-" + options_.name_of(id), page);
      }
      exchange->Respond(200, "text/plain; version=0.0.4; charset=utf-8", page.Text());
    } else if (get && (request.path == "/health" || request.path == "/live" ||
                       request.path == "/ready" || request.path == "/health/ready")) {
      const bool ready = !draining_ && (request.path == "/live" || host_.started_up());
      exchange->Respond(ready ? 200 : 503, kJson,
                        ready ? R"({"status":"ready"})" : R"({"status":"notready"})");
    } else {
      Refuse(exchange, 404, "Route not found: " + request.method + " " + request.path);
    }
  }

 private:
  static void Refuse(const std::shared_ptr<Exchange>& exchange, int status,
                     const std::string& message) {
    exchange->Respond(status, kJson,
                      ErrorBody({.status = status, .message = message, .param = {}}));
  }

  // The worker that the path names; answers when there is none.
  std::optional<std::uint32_t> IndexOf(const std::shared_ptr<Exchange>& exchange,
                                       const HttpRequest& request,
                                       std::string (*path_of)(std::uint32_t)) const {
    std::uint32_t index = 0;
    const std::string_view number = std::string_view(request.path).substr(11);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || path_of(index) != request.path || index >= cards_.size()) {
      Refuse(exchange, 404, "no such worker: " + request.path);
      return std::nullopt;
    }
    return index;
  }

  void Proceed(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
    if (!IndexOf(exchange, request, ProceedPath)) {
      return;
    }
    const auto read = ProceedFromJson(request.body);
    if (!read) {
      Refuse(exchange, 400, read.error().Text());
    } else if (dispatcher_.Proceed(read->stream, read->terms)) {
      exchange->Respond(200, kJson, "{}");
    } else {
      Refuse(exchange, 404, "no such stream");
    }
  }

  void Begin(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
    const std::optional<std::uint32_t> found = IndexOf(exchange, request, WorkerPath);
    if (!found) {
      return;
    }
    const std::uint32_t index = *found;
    auto read = RequestFromJson(request.body);
    if (!read) {
      Refuse(exchange, 400, read.error().Text());
      return;
    }
    if (read->handoff.has_value() != (cards_[index].role == engine::WorkerRole::kDecode)) {
      Refuse(exchange, 400,
             fmt::format("worker {} is {} and takes requests {} a handoff", index,
                         engine::WorkerRoleName(cards_[index].role),
                         read->handoff ? "without" : "with"));
      return;
    }
    auto live = std::make_shared<LiveRequest>(*std::move(read));
    live->received = request.received;
    live->worker = index;
    const WorkerCard& card = cards_[index];
    live->NameBlocks(card.block_size, (card.total_blocks + 1) * card.block_size);
    std::make_shared<WorkerStream>(dispatcher_, exchange)->Start(std::move(live));
  }

  const WorkerOptions& options_;
  Dispatcher& dispatcher_;
  const EngineHost& host_;
  std::string process_;
  std::vector<WorkerCard> cards_;
  bool draining_ = false;
};

// Keeps the entry in the directory alive.
void Beat(HttpServer& server, const Registration& registration, const bool& withdrawn) {
  server.After(kHeartbeatEveryMs, [&server, &registration, &withdrawn] {
    if (!withdrawn) {
      registration.Renew();
      Beat(server, registration, withdrawn);
    }
  });
}

}  // namespace

Result<void> RunMocker(const MockerOptions& options) {
  const WorkerOptions& worker = options.worker;
  WorkerServer* handler = nullptr;
  HttpServer server(options.http,
                    [&](const std::shared_ptr<Exchange>& exchange, HttpRequest&& request) {
                      handler->Handle(exchange, request);
                    });
  DYNO_TRY_VOID(server.Listen());
  DYNO_TRY(const Publishers publishers, OpenPublishers(worker.ports, worker.Ranks()));
  Dispatcher dispatcher(RouterMode::kRoundRobin, 0);
  EventQueue queue(server, dispatcher);
  HostOptions host_options = worker.Host(publishers);
  host_options.deliver = [&](std::vector<StreamEvent>&& batch) { queue.Push(std::move(batch)); };
  EngineHost host(std::move(host_options));
  // The port makes ids unique on a host, the process id over restarts.
  const std::string process = fmt::format("{}-{}", server.port(), getpid());
  const std::vector<WorkerCard> cards = worker.Cards(process + "-");
  for (std::uint32_t place = 0; place < cards.size(); ++place) {
    dispatcher.AddWorker(std::make_unique<LocalLink>(host, place, cards[place]));
  }
  WorkerServer worker_server(worker, dispatcher, host, process);
  handler = &worker_server;
  const DirectoryEntry entry = {
      .id = process,
      .model = options.model,
      .address = {.host =
                      options.advertise_host.empty() ? options.http.host : options.advertise_host,
                  .port = server.port()},
      .cards = cards};
  Registration registration;
  bool withdrawn = options.discovery_dir.empty();
  if (!withdrawn) {
    DYNO_TRY(registration, Registration::Make(options.discovery_dir, entry));
    Beat(server, registration, withdrawn);
  }
  std::unique_ptr<EtcdRegistration> etcd;
  if (options.etcd) {
    etcd = std::make_unique<EtcdRegistration>(*options.etcd, entry);
  }
  // Streams go on to their end, without a limit; new ones do not come, as the entry has gone.
  Shutdown shutdown(
      server,
      [&] {
        worker_server.Drain();
        if (etcd != nullptr) {
          etcd->Withdraw();
        }
        if (!std::exchange(withdrawn, true)) {
          registration.Withdraw();
        }
      },
      std::numeric_limits<double>::infinity());
  server.OnSignal([&] { shutdown.OnSignal(); });
  host.Start();
  if (options.on_listening) {
    options.on_listening(server.port(), [&] { server.Post([&] { server.Stop(); }); });
  }
  server.Run();
  if (!std::exchange(withdrawn, true)) {
    registration.Withdraw();
  }
  queue.Close();
  host.Stop();
  return {};
}

}  // namespace dynosim::live
