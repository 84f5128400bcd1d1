// SPDX-License-Identifier: Apache-2.0
#include "live/remote_link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "engine/transfer.h"
#include "live/engine_host.h"
#include "live/http_client.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/worker_link.h"
#include "live/worker_wire.h"

namespace dynosim::live {

namespace {

// Idle connections that a link keeps.
constexpr std::size_t kIdleMax = 64;

}  // namespace

struct RemoteLink::State : std::enable_shared_from_this<State> {
  State(HttpServer& http_server, HttpAddress worker, std::uint32_t index,
        std::function<void(std::vector<StreamEvent>&&)> receiver)
      : server(http_server),
        address(std::move(worker)),
        path(WorkerPath(index)),
        proceed_path(ProceedPath(index)),
        deliver(std::move(receiver)) {}

  struct Open {
    std::uint64_t stream = 0;
    std::shared_ptr<HttpClientConnection> connection;
    std::string again;         // the request, while a kept connection may turn out to be closed
    bool ended = false;        // its last event has come
    std::uint64_t remote = 0;  // what the worker's process knows a handoff's stream by
  };

  // A kept connection, or else a new one.
  struct Taken {
    std::shared_ptr<HttpClientConnection> connection;
    bool kept = false;
  };
  Taken Take() {
    if (idle.empty()) {
      return {.connection = HttpClientConnection::Make(server.context())};
    }
    Taken out = {.connection = std::move(idle.back()), .kept = true};
    idle.pop_back();
    return out;
  }
  void Keep(std::shared_ptr<HttpClientConnection> connection, bool reusable) {
    if (reusable && idle.size() < kIdleMax) {
      idle.push_back(std::move(connection));
    }
  }

  void Submit(std::uint64_t stream, const std::string& body) {
    const auto [connection, kept] = Take();
    open.push_back({.stream = stream, .connection = connection, .again = kept ? body : ""});
    connection->Ask(
        address, {.method = "POST", .path = path, .body = body},
        {.on_body = [self = shared_from_this(),
                     stream](std::string& text) { self->OnBody(stream, text); },
         .on_end = [self = shared_from_this(), stream](
                       int status, bool reusable) { self->OnEnd(stream, status, reusable); }});
  }

  std::vector<Open>::iterator Find(std::uint64_t stream) {
    return std::ranges::find(open, stream, &Open::stream);
  }

  void OnBody(std::uint64_t stream, std::string& text) {
    if (const auto found = Find(stream); found != open.end()) {
      found->again.clear();
    }
    std::vector<StreamEvent> events;
    std::size_t at = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
      StreamEvent event = {.stream = stream};
      if (ParseEvent(std::string_view(text).substr(at, end - at), event)) {
        if (const auto found = Find(stream); found != open.end()) {
          found->ended = found->ended || IsEnd(event.kind);
          if (event.kind == StreamEvent::Kind::kHeld ||
              event.kind == StreamEvent::Kind::kReserved) {
            found->remote = event.amount;
          }
        }
        events.push_back(std::move(event));
      }
      at = end + 1;
    }
    text.erase(0, at);
    if (!events.empty()) {
      deliver(std::move(events));
    }
  }

  void OnEnd(std::uint64_t stream, int status, bool reusable) {
    const auto found = Find(stream);
    if (found == open.end()) {
      return;
    }
    const Open ended = std::move(*found);
    open.erase(found);
    if (status == 0 && !ended.again.empty()) {
      idle.clear();  // the others are as old
      Submit(stream, ended.again);
      return;
    }
    Keep(ended.connection, reusable);
    if (!ended.ended) {
      Lost(stream, status);
    }
  }

  void Lost(std::uint64_t stream, int status) {
    std::vector<StreamEvent> events;
    events.push_back({.kind = StreamEvent::Kind::kLost,
                      .stream = stream,
                      .text = status == 0 ? "Service temporarily unavailable"
                                          : fmt::format("the worker answered {}", status)});
    deliver(std::move(events));
  }

  // A message beside the stream. One that does not arrive costs the stream.
  void Tell(std::uint64_t stream, const std::string& body) {
    const auto [connection, kept] = Take();
    telling.push_back(connection);
    connection->Ask(address, {.method = "POST", .path = proceed_path, .body = body},
                    {.on_body = [](std::string& text) { text.clear(); },
                     .on_end =
                         [self = shared_from_this(), stream, body, kept, connection](
                             int status, bool reusable) {
                           std::erase(self->telling, connection);
                           self->Keep(connection, reusable);
                           if (status != 0) {
                             return;  // the stream tells the rest
                           }
                           if (kept) {
                             self->idle.clear();
                             self->Tell(stream, body);
                           } else if (self->Close(stream)) {
                             self->Lost(stream, 0);
                           }
                         }});
  }

  // The worker sees that nobody listens any more.
  bool Close(std::uint64_t stream) {
    const auto found = Find(stream);
    if (found == open.end()) {
      return false;
    }
    found->connection->Drop();
    open.erase(found);
    return true;
  }

  HttpServer& server;
  HttpAddress address;
  std::string path, proceed_path;
  std::function<void(std::vector<StreamEvent>&&)> deliver;
  std::vector<Open> open;
  std::vector<std::shared_ptr<HttpClientConnection>> idle, telling;
};

RemoteLink::RemoteLink(HttpServer& server, const HttpAddress& address, std::uint32_t index,
                       WorkerCard card, std::function<void(std::vector<StreamEvent>&&)> deliver)
    : card_(std::move(card)),
      state_(std::make_shared<State>(server, address, index, std::move(deliver))) {}

RemoteLink::~RemoteLink() {
  for (const State::Open& stream : state_->open) {
    stream.connection->Drop();
  }
  for (const auto& list : {state_->idle, state_->telling}) {
    for (const auto& connection : list) {
      connection->Drop();
    }
  }
}

void RemoteLink::Submit(std::uint32_t rank, std::uint64_t stream,
                        std::shared_ptr<const LiveRequest> request) {
  state_->Submit(stream, RequestToJson(*request, rank));
}

void RemoteLink::Cancel(std::uint64_t stream) { state_->Close(stream); }

void RemoteLink::Proceed(std::uint64_t stream, const engine::TransferTerms& terms) {
  const auto found = state_->Find(stream);
  if (found != state_->open.end() && found->remote != 0) {
    state_->Tell(stream, ProceedToJson(found->remote, terms));
  }
}

void FetchCards(HttpServer& server, const HttpAddress& address,
                std::function<void(Result<std::vector<WorkerCard>>)> done) {
  const std::string where = fmt::format("http://{}:{}", address.host, address.port);
  AskHttp(server.context(), address, {.method = "GET", .path = std::string(kCardsPath), .body = {}},
          [where, done = std::move(done)](int status, const std::string& text) {
            if (status != 200) {
              done(FailedError(where, "no worker answers"));
              return;
            }
            done([&]() -> Result<std::vector<WorkerCard>> {
              DYNO_TRY(const Json json, ParseJson(text, where));
              std::vector<WorkerCard> cards;
              if (!json.is_array()) {
                return FailedError(where, "the list of cards must be an array");
              }
              for (const Json& item : json.array()) {
                DYNO_TRY(WorkerCard card, CardFromJson(item, where));
                cards.push_back(std::move(card));
              }
              return cards;
            }());
          });
}

}  // namespace dynosim::live
