// SPDX-License-Identifier: Apache-2.0
#include "live/remote_link.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "live/engine_host.h"
#include "live/http_server.h"
#include "live/live_request.h"
#include "live/worker_link.h"
#include "live/worker_wire.h"

namespace dynosim::live {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Idle connections that a link keeps.
constexpr std::size_t kIdleMax = 64;

// One HTTP exchange as a client. The body is handed over as it comes.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  struct Callbacks {
    // May take what it has understood out of the body.
    std::function<void(std::string& body)> on_body;
    // The answer is complete (`status`), or the connection failed (0). Called once.
    std::function<void(int status, bool reusable)> on_end;
  };

  explicit ClientConnection(asio::io_context& context) : socket_(context) {}

  void Ask(const tcp::endpoint& endpoint, std::string text, Callbacks callbacks) {
    out_ = std::move(text);
    callbacks_ = std::make_shared<Callbacks>(std::move(callbacks));
    parser_.emplace();
    parser_->eager(true);
    parser_->body_limit(boost::none);
    if (connected_) {
      Write();
      return;
    }
    socket_.async_connect(endpoint, [self = shared_from_this()](error_code error) {
      if (error) {
        self->End(0);
        return;
      }
      error_code ignored;
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->connected_ = true;
      self->Write();
    });
  }

  // No callback follows.
  void Drop() {
    callbacks_.reset();
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void Write() {
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) {
                          self->End(0);
                        } else {
                          self->Read();
                        }
                      });
  }

  void Read() {
    socket_.async_read_some(in_.prepare(16384),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              if (error) {
                                self->End(0);
                                return;
                              }
                              self->in_.commit(bytes);
                              self->Parse();
                            });
  }

  void Parse() {
    error_code error;
    while (in_.size() > 0 && !parser_->is_done()) {
      const std::size_t used = parser_->put(in_.data(), error);
      in_.consume(used);
      if (error == http::error::need_more || (!error && used == 0)) {
        break;
      }
      if (error) {
        End(0);
        return;
      }
    }
    const std::shared_ptr<Callbacks> callbacks = callbacks_;
    if (callbacks != nullptr && parser_->is_header_done()) {
      callbacks->on_body(parser_->get().body());
    }
    if (callbacks_ == nullptr) {
      return;  // dropped, perhaps inside the callback
    }
    if (parser_->is_done()) {
      End(parser_->get().result_int());
    } else {
      Read();
    }
  }

  void End(unsigned status) {
    if (status == 0) {
      connected_ = false;
      error_code ignored;
      socket_.close(ignored);
    }
    if (const auto callbacks = std::exchange(callbacks_, nullptr)) {
      callbacks->on_end(static_cast<int>(status), status != 0 && parser_->keep_alive());
    }
  }

  tcp::socket socket_;
  bool connected_ = false;
  std::string out_;
  boost::beast::flat_buffer in_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::shared_ptr<Callbacks> callbacks_;  // null: nobody waits
};

std::string RequestText(std::string_view method, std::string_view path, const std::string& body) {
  return fmt::format("{} {} HTTP/1.1\r\nhost: worker\r\ncontent-length: {}\r\n\r\n{}", method, path,
                     body.size(), body);
}

tcp::endpoint EndpointOf(const WorkerAddress& address) {
  error_code ignored;
  return {asio::ip::make_address(address.host, ignored), address.port};
}

}  // namespace

Result<WorkerAddress> ParseWorkerAddress(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (rest.starts_with(kScheme)) {
    rest.remove_prefix(kScheme.size());
  }
  const std::size_t colon = rest.rfind(':');
  WorkerAddress out;
  error_code wrong;
  if (colon != std::string_view::npos) {
    out.host = std::string(rest.substr(0, colon));
    out.host = out.host == "localhost" ? "127.0.0.1" : out.host;
    asio::ip::make_address(out.host, wrong);
    const std::string_view port = rest.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (!wrong && error == std::errc() && end == port.data() + port.size() && out.port != 0) {
      return out;
    }
  }
  return UsageError("--worker", "must be http://<IP address>:<port>, got " + url);
}

struct RemoteLink::State : std::enable_shared_from_this<State> {
  State(HttpServer& http_server, const WorkerAddress& address, std::uint32_t index,
        std::function<void(std::vector<StreamEvent>&&)> receiver)
      : server(http_server),
        endpoint(EndpointOf(address)),
        path(WorkerPath(index)),
        deliver(std::move(receiver)) {}

  struct Open {
    std::uint64_t stream = 0;
    std::shared_ptr<ClientConnection> connection;
    std::string again;   // the request, while a kept connection may turn out to be closed
    bool ended = false;  // its last event has come
  };

  void Submit(std::uint64_t stream, const std::string& body) {
    std::shared_ptr<ClientConnection> connection;
    const bool kept = !idle.empty();
    if (kept) {
      connection = std::move(idle.back());
      idle.pop_back();
    } else {
      connection = std::make_shared<ClientConnection>(server.context());
    }
    open.push_back({.stream = stream, .connection = connection, .again = kept ? body : ""});
    connection->Ask(
        endpoint, RequestText("POST", path, body),
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
  tcp::endpoint endpoint;
  std::string path;
  std::function<void(std::vector<StreamEvent>&&)> deliver;
  std::vector<Open> open;
  std::vector<std::shared_ptr<ClientConnection>> idle;
};

RemoteLink::RemoteLink(HttpServer& server, const WorkerAddress& address, std::uint32_t index,
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

void FetchCards(HttpServer& server, const WorkerAddress& address,
                std::function<void(Result<std::vector<WorkerCard>>)> done) {
  const auto connection = std::make_shared<ClientConnection>(server.context());
  const auto text = std::make_shared<std::string>();
  const std::string where = fmt::format("http://{}:{}", address.host, address.port);
  connection->Ask(EndpointOf(address), RequestText("GET", kCardsPath, ""),
                  {.on_body = [text](std::string& body) { *text += std::exchange(body, {}); },
                   .on_end =
                       [text, where, done = std::move(done), connection](int status, bool) {
                         connection->Drop();
                         if (status != 200) {
                           done(FailedError(where, "no worker answers"));
                           return;
                         }
                         done([&]() -> Result<std::vector<WorkerCard>> {
                           DYNO_TRY(const Json json, ParseJson(*text, where));
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
                       }});
}

}  // namespace dynosim::live
