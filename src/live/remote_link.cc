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
        deliver(std::move(receiver)) {}

  struct Open {
    std::uint64_t stream = 0;
    std::shared_ptr<HttpClientConnection> connection;
    std::string again;   // the request, while a kept connection may turn out to be closed
    bool ended = false;  // its last event has come
  };

  void Submit(std::uint64_t stream, const std::string& body) {
    std::shared_ptr<HttpClientConnection> connection;
    const bool kept = !idle.empty();
    if (kept) {
      connection = std::move(idle.back());
      idle.pop_back();
    } else {
      connection = HttpClientConnection::Make(server.context());
    }
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
        if (event.kind != StreamEvent::Kind::kAdmitted &&
            event.kind != StreamEvent::Kind::kTokens) {
          if (const auto found = Find(stream); found != open.end()) {
            found->ended = true;
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
    if (reusable && idle.size() < kIdleMax) {
      idle.push_back(ended.connection);
    }
    if (!ended.ended) {
      std::vector<StreamEvent> events;
      events.push_back({.kind = StreamEvent::Kind::kLost,
                        .stream = stream,
                        .text = status == 0 ? "Service temporarily unavailable"
                                            : fmt::format("the worker answered {}", status)});
      deliver(std::move(events));
    }
  }

  HttpServer& server;
  HttpAddress address;
  std::string path;
  std::function<void(std::vector<StreamEvent>&&)> deliver;
  std::vector<Open> open;
  std::vector<std::shared_ptr<HttpClientConnection>> idle;
};

RemoteLink::RemoteLink(HttpServer& server, const HttpAddress& address, std::uint32_t index,
                       WorkerCard card, std::function<void(std::vector<StreamEvent>&&)> deliver)
    : card_(std::move(card)),
      state_(std::make_shared<State>(server, address, index, std::move(deliver))) {}

RemoteLink::~RemoteLink() {
  for (const State::Open& stream : state_->open) {
    stream.connection->Drop();
  }
  for (const auto& connection : state_->idle) {
    connection->Drop();
  }
}

void RemoteLink::Submit(std::uint32_t rank, std::uint64_t stream,
                        std::shared_ptr<const LiveRequest> request) {
  state_->Submit(stream, RequestToJson(*request, rank));
}

void RemoteLink::Cancel(std::uint64_t stream) {
  const auto found = state_->Find(stream);
  if (found != state_->open.end()) {
    // The worker sees that the client has gone.
    found->connection->Drop();
    state_->open.erase(found);
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
