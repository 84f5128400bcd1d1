// SPDX-License-Identifier: Apache-2.0
#include "live/http_client.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "base/result.h"

namespace dynosim::live {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// One HTTP exchange as a client. The body is handed over as it comes.
class Connection final : public HttpClientConnection,
                         public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(asio::io_context& context) : socket_(context) {}

  void Ask(const HttpAddress& address, const HttpAsk& ask, Callbacks callbacks) override {
    out_ = fmt::format("{} {} HTTP/1.1\r\nhost: {}:{}\r\ncontent-length: {}\r\n\r\n{}", ask.method,
                       ask.path, address.host, address.port, ask.body.size(), ask.body);
    callbacks_ = std::make_shared<Callbacks>(std::move(callbacks));
    parser_.emplace();
    parser_->eager(true);
    parser_->body_limit(boost::none);
    if (connected_) {
      Write();
      return;
    }
    error_code ignored;
    const tcp::endpoint endpoint(asio::ip::make_address(address.host, ignored), address.port);
    socket_.async_connect(endpoint, [self = shared_from_this()](error_code error) {
      if (error) {
        self->End(0);
        return;
      }
      error_code kept;
      self->socket_.set_option(tcp::no_delay(true), kept);
      self->connected_ = true;
      self->Write();
    });
  }

  // No callback follows.
  void Drop() override {
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

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

std::optional<HostAndPort> SplitUrl(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with(kScheme)) {
    url.remove_prefix(kScheme.size());
  }
  if (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  const std::size_t colon = url.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  HostAndPort out = {.host = std::string(url.substr(0, colon))};
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  const std::string_view port = url.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size() || out.port == 0) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

Result<HttpAddress> ParseHttpAddress(const std::string& where, const std::string& url) {
  if (const auto split = SplitUrl(url)) {
    const std::string host = split->host == "localhost" ? "127.0.0.1" : split->host;
    error_code wrong;
    asio::ip::make_address(host, wrong);
    if (!wrong) {
      return HttpAddress{.host = host, .port = split->port};
    }
  }
  return UsageError(where, "must be http://<IP address>:<port>, got " + url);
}

Result<HttpAddress> ResolveHttpAddress(const std::string& where, const std::string& url) {
  if (auto address = ParseHttpAddress(where, url)) {
    return address;
  }
  const auto split = SplitUrl(url);
  if (!split) {
    return UsageError(where, "must be http://<host>:<port>, got " + url);
  }
  asio::io_context context;
  tcp::resolver resolver(context);
  error_code error;
  const auto found = resolver.resolve(split->host, std::to_string(split->port), error);
  if (error || found.empty()) {
    return UsageError(where, "host " + split->host + " is not known: " + error.message());
  }
  return HttpAddress{.host = found.begin()->endpoint().address().to_string(), .port = split->port};
}

std::shared_ptr<HttpClientConnection> HttpClientConnection::Make(asio::io_context& context) {
  return std::make_shared<Connection>(context);
}

void AskHttp(asio::io_context& context, const HttpAddress& address, const HttpAsk& ask,
             std::function<void(int status, const std::string& body)> done, double timeout_ms) {
  struct Waiting {
    explicit Waiting(asio::io_context& c) : connection(HttpClientConnection::Make(c)), timer(c) {}
    std::shared_ptr<HttpClientConnection> connection;
    asio::steady_timer timer;
    std::string body;
    std::function<void(int, const std::string&)> done;
    void End(int status) {
      connection->Drop();
      timer.cancel();
      if (const auto callback = std::exchange(done, nullptr)) {
        callback(status, body);
      }
    }
  };
  const auto waiting = std::make_shared<Waiting>(context);
  waiting->done = std::move(done);
  waiting->timer.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(timeout_ms)));
  waiting->timer.async_wait([waiting](error_code stopped) {
    if (!stopped) {
      waiting->End(0);
    }
  });
  waiting->connection->Ask(
      address, ask,
      {.on_body = [waiting](std::string& body) { waiting->body += std::exchange(body, {}); },
       .on_end = [waiting](int status, bool /*reusable*/) { waiting->End(status); }});
}

HttpReply AskHttpNow(const HttpAddress& address, const HttpAsk& ask, double timeout_ms) {
  asio::io_context context(1);
  HttpReply out;
  AskHttp(
      context, address, ask,
      [&](int status, const std::string& body) { out = {.status = status, .body = body}; },
      timeout_ms);
  context.run();
  return out;
}

}  // namespace dynosim::live
