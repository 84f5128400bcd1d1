// SPDX-License-Identifier: Apache-2.0
#include "live/http_server.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/result.h"
#include "live/prompt_thread.h"

namespace dynosim::live {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Bytes that a client may send ahead while its last request is answered.
constexpr std::size_t kReadAhead = 256U << 10;
constexpr std::size_t kReadSize = 16U << 10;
constexpr std::size_t kWaitingSize = 2U << 10;
// How long a client may take to read the last answer and close.
constexpr double kLingerMs = 10000.0;
using Steady = std::chrono::steady_clock;

// Open streams need descriptors: the soft limit rises to the hard one, within reason.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int StatusOf(const error_code& error) {
  if (error == http::error::body_limit) {
    return 413;
  }
  return error == http::error::header_limit ? 431 : 400;
}

}  // namespace

std::string_view HttpRequest::Header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view HttpReason(int status) {
  if (status == 529) {
    return "Overloaded";
  }
  const auto text = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

struct HttpServer::State {
  class Connection;

  State(const HttpOptions& server_options, Handler request_handler)
      : options(server_options), handler(std::move(request_handler)) {}

  void Accept();
  void AwaitSignal();
  // Closes the connections whose time is up, and again after a while.
  void Sweep();

  HttpOptions options;
  Handler handler;
  std::set<Connection*> connections;  // the context ends first, and with it those that are left
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::signal_set signals{context};
  asio::steady_timer accept_retry{context};
  asio::steady_timer sweep{context};
  std::function<void()> on_signal;
  std::size_t exchanges = 0;
};

// One connection. It is its own Exchange: one request is answered at a time.
class HttpServer::State::Connection final : public Exchange,
                                            public std::enable_shared_from_this<Connection> {
 public:
  Connection(State& state, tcp::socket socket) : state_(state), socket_(std::move(socket)) {
    state_.connections.insert(this);
  }
  ~Connection() override { state_.connections.erase(this); }

  void Start() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    NewParser();
    AllowMs(state_.options.header_timeout_ms);
    Read();
  }

  // Whether the time for what is awaited is up, and what follows.
  bool due(Steady::time_point now) const { return !gone_ && now >= deadline_; }
  void OnTime() {
    if (in_request_ && !answering_ && !closing_) {
      Refuse(408, "the request was not complete in time");
    } else {
      Close();
    }
  }

  void AddHeader(std::string name, std::string value) override {
    // A line break in a value would start another header.
    std::erase_if(value, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    extra_ += fmt::format("{}: {}\r\n", name, value);
  }

  void Respond(int status, std::string_view content_type, std::string_view body) override {
    if (!answering_ || started_) {
      return;
    }
    started_ = true;
    Head(status, content_type, fmt::format("content-length: {}\r\n", body.size()));
    if (!head_only_) {
      out_ += body;
    }
    FinishAnswer();
  }

  void BeginStream(int status, std::string_view content_type) override {
    if (!answering_ || started_) {
      return;
    }
    started_ = true;
    chunked_ = version_ >= 11;
    keep_alive_ = keep_alive_ && chunked_;
    Head(status, content_type,
         chunked_ ? "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n"
                  : "cache-control: no-cache\r\n");
  }

  void Append(std::string_view data) override {
    if (answering_) {
      body_ += data;
    }
  }

  void Flush() override {
    if (!answering_) {
      return;
    }
    TakeBody();
    Send();
  }

  void EndStream() override {
    if (!answering_) {
      return;
    }
    TakeBody();
    if (chunked_) {
      out_ += "0\r\n\r\n";
    }
    FinishAnswer();
  }

  void Abort() override {
    if (answering_) {
      Close();
    }
  }

  void OnGone(std::function<void()> callback) override {
    if (gone_) {
      callback();
      return;
    }
    on_gone_ = std::move(callback);
  }
  bool gone() const override { return gone_; }
  bool started() const override { return started_; }

 private:
  // The answer is complete: the client takes it, and asks again or closes.
  void AwaitClient() { AllowMs(closing_ ? kLingerMs : state_.options.idle_timeout_ms); }

  void AllowMs(double ms) {
    deadline_ = Steady::now() + std::chrono::duration_cast<Steady::duration>(
                                    std::chrono::duration<double, std::milli>(ms));
  }

  void NewParser() {
    parser_.emplace();
    in_request_ = false;
    parser_->eager(true);
    parser_->body_limit(state_.options.body_bytes_max);
    parser_->header_limit(state_.options.header_bytes_max);
    asked_to_continue_ = false;
  }

  void Read() {
    if (reading_ || gone_ || in_.size() >= kReadAhead + state_.options.header_bytes_max) {
      return;
    }
    reading_ = true;
    // A connection that waits, for a request or while its answer streams, has a small buffer.
    const bool waits = in_.size() == 0;
    if (waits && in_.capacity() > kWaitingSize) {
      in_.shrink_to_fit();
    }
    socket_.async_read_some(in_.prepare(waits ? kWaitingSize : kReadSize),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              self->reading_ = false;
                              self->OnRead(error, bytes);
                            });
  }

  void OnRead(const error_code& error, std::size_t bytes) {
    if (error) {
      Close();
      return;
    }
    if (closing_) {
      return Read();  // what comes after the last answer is nobody's
    }
    in_.commit(bytes);
    Parse();
    Read();
  }

  // Feeds what has been read to the parser, unless an answer is in progress.
  void Parse() {
    while (!answering_ && !closing_ && !gone_ && in_.size() > 0) {
      if (!in_request_) {
        in_request_ = true;
        AllowMs(state_.options.header_timeout_ms);
      }
      const bool had_header = parser_->is_header_done();
      error_code error;
      const std::size_t used = parser_->put(in_.data(), error);
      const bool folded = !had_header && HasFoldedLine(in_.data().data(), used);
      in_.consume(used);
      if (error && error != http::error::need_more) {
        Refuse(StatusOf(error), error.message());
        return;
      }
      if (parser_->is_header_done()) {
        const std::string_view wrong =
            folded ? "a header goes on in the next line" : AmbiguousHeader();
        if (!wrong.empty()) {
          Refuse(400, std::string(wrong));
          return;
        }
        AllowMs(state_.options.body_timeout_ms);
      }
      if (parser_->is_done()) {
        Handle();
        continue;
      }
      Continue();
      if (error || used == 0) {
        if (in_.size() > state_.options.header_bytes_max) {
          Refuse(parser_->is_header_done() ? 400 : 431, "a line is too long");
        }
        return;
      }
    }
  }

  // A line that continues the header above it is read differently by different programs.
  static bool HasFoldedLine(const void* data, std::size_t size) {
    const std::string_view text(static_cast<const char*>(data), size);
    const std::string_view head = text.substr(0, text.find("\r\n\r\n"));
    return head.find("\r\n ") != std::string_view::npos ||
           head.find("\r\n\t") != std::string_view::npos;
  }

  // What two programs may read as different requests; empty when there is nothing. A body of
  // unknown length would be taken for the next request.
  std::string_view AmbiguousHeader() const {
    const auto& head = parser_->get();
    const auto encoding = head[http::field::transfer_encoding];
    if (!encoding.empty()) {
      if (!boost::beast::iequals(encoding, "chunked") ||
          head.count(http::field::transfer_encoding) > 1) {
        return "unknown transfer-encoding";
      }
      if (head.version() < 11) {
        return "transfer-encoding needs HTTP/1.1";
      }
      if (head.count(http::field::content_length) > 0) {
        return "both content-length and transfer-encoding";
      }
    }
    const auto length = head[http::field::content_length];
    if (head.count(http::field::content_length) > 1 ||
        length.find_first_not_of("0123456789") != boost::beast::string_view::npos) {
      return "content-length must be one number";
    }
    const auto hosts = head.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && head.version() >= 11)) {
      return "there must be one host header";
    }
    return {};
  }

  // Answers "Expect: 100-continue", which large bodies come with.
  void Continue() {
    if (asked_to_continue_ || !parser_->is_header_done()) {
      return;
    }
    asked_to_continue_ = true;
    const auto expect = parser_->get()[http::field::expect];
    if (boost::beast::iequals(expect, "100-continue") && !parser_->is_done()) {
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      Send();
    }
  }

  // The rest of the input cannot be understood: answer and close.
  void Refuse(int status, const std::string& why) {
    BeginAnswer(11, false, false);
    const std::string message = "malformed HTTP request: " + why;
    Respond(status, "application/json",
            fmt::format(R"({{"error":{{"message":"{0}","type":"{1}","param":null,"code":{2}}},)"
                        R"("message":"{0}","type":"{1}","code":{2}}})",
                        message, HttpReason(status), status));
  }

  void BeginAnswer(unsigned version, bool keep_alive, bool head_only) {
    deadline_ = Steady::time_point::max();
    version_ = version;
    keep_alive_ = keep_alive;
    head_only_ = head_only;
    answering_ = true;
    started_ = chunked_ = false;
    extra_.clear();
    body_.clear();
    on_gone_ = nullptr;
    ++state_.exchanges;
  }

  void Handle() {
    auto message = parser_->release();
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    const std::size_t question = target.find('?');
    request.path = target.substr(0, question);
    request.query = question == std::string::npos ? "" : target.substr(question + 1);
    request.body = std::move(message.body());
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::ranges::transform(name, name.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    BeginAnswer(message.version(), message.keep_alive(), request.method == "HEAD");
    NewParser();
    state_.handler(shared_from_this(), std::move(request));
  }

  void Head(int status, std::string_view content_type, std::string_view framing) {
    out_ += fmt::format("HTTP/1.1 {} {}\r\n", status, HttpReason(status));
    if (!content_type.empty()) {
      out_ += fmt::format("content-type: {}\r\n", content_type);
    }
    out_ += framing;
    out_ += extra_;
    out_ += keep_alive_ ? "\r\n" : "connection: close\r\n\r\n";
  }

  void TakeBody() {
    if (body_.empty()) {
      return;
    }
    if (chunked_) {
      fmt::format_to(std::back_inserter(out_), "{:x}\r\n", body_.size());
      out_ += body_;
      out_ += "\r\n";
    } else {
      out_ += body_;
    }
    body_.clear();
  }

  void FinishAnswer() {
    answering_ = false;
    --state_.exchanges;
    on_gone_ = nullptr;
    closing_ = !keep_alive_;
    AwaitClient();
    if (closing_) {
      in_.consume(in_.size());
    }
    Send();
    if (!closing_ && !gone_) {
      // The next request may be here already; not from inside the handler.
      asio::post(state_.context, [self = shared_from_this()] {
        self->Parse();
        self->Read();
      });
    }
  }

  // Writes what the socket takes now and waits for room for the rest.
  void Send() {
    if (waiting_ || gone_) {
      return;
    }
    while (sent_ < out_.size()) {
      error_code error;
      const std::size_t bytes =
          socket_.send(asio::buffer(out_.data() + sent_, out_.size() - sent_), 0, error);
      if (error == asio::error::would_block || error == asio::error::try_again) {
        Await();
        return;
      }
      if (error) {
        Close();
        return;
      }
      sent_ += bytes;
    }
    out_.clear();
    sent_ = 0;
    if (closing_) {
      error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  void Await() {
    if (out_.size() - sent_ > state_.options.unsent_bytes_max) {
      Close();
      return;
    }
    waiting_ = true;
    socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code error) {
      self->waiting_ = false;
      if (error) {
        self->Close();
        return;
      }
      if (!self->answering_) {
        self->AwaitClient();
      }
      self->Send();
    });
  }

  void Close() {
    if (gone_) {
      return;
    }
    gone_ = true;
    error_code ignored;
    socket_.close(ignored);
    if (answering_) {
      answering_ = false;
      --state_.exchanges;
      if (auto callback = std::exchange(on_gone_, nullptr)) {
        callback();
      }
    }
  }

  State& state_;
  tcp::socket socket_;
  boost::beast::flat_buffer in_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string out_;  // bytes for the socket; the first sent_ are gone
  std::size_t sent_ = 0;
  std::string body_;   // body data that is not framed yet
  std::string extra_;  // header lines
  std::function<void()> on_gone_;
  unsigned version_ = 11;
  Steady::time_point deadline_ = Steady::time_point::max();  // for what is awaited now
  bool in_request_ = false;                                  // some of it has come
  bool reading_ = false, waiting_ = false, closing_ = false, gone_ = false;
  bool answering_ = false, started_ = false, chunked_ = false, keep_alive_ = true;
  bool head_only_ = false, asked_to_continue_ = false;
};

void HttpServer::State::Accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) {
      return;
    }
    if (error) {
      // Usually no descriptor is free; the connection stays in the queue of the system.
      accept_retry.expires_after(std::chrono::milliseconds(50));
      accept_retry.async_wait([this](error_code stopped) {
        if (!stopped && acceptor.is_open()) {
          Accept();
        }
      });
      return;
    }
    std::make_shared<Connection>(*this, std::move(socket))->Start();
    Accept();
  });
}

void HttpServer::State::Sweep() {
  const double shortest = std::min(
      {options.header_timeout_ms, options.body_timeout_ms, options.idle_timeout_ms, kLingerMs});
  sweep.expires_after(std::chrono::duration_cast<Steady::duration>(
      std::chrono::duration<double, std::milli>(std::clamp(shortest / 8.0, 5.0, 1000.0))));
  sweep.async_wait([this](error_code error) {
    if (error) {
      return;
    }
    const Steady::time_point now = Steady::now();
    // A connection that closes may end here.
    std::vector<std::shared_ptr<Connection>> all;
    for (Connection* connection : connections) {
      if (connection->due(now)) {
        all.push_back(connection->shared_from_this());
      }
    }
    for (const auto& connection : all) {
      connection->OnTime();
    }
    Sweep();
  });
}

void HttpServer::State::AwaitSignal() {
  signals.async_wait([this](error_code error, int /*number*/) {
    if (!error) {
      on_signal();
      AwaitSignal();
    }
  });
}

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : state_(std::make_unique<State>(options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

Result<void> HttpServer::Listen() {
  RaiseDescriptorLimit();
  const HttpOptions& options = state_->options;
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) {
    return UsageError("--http-host", "not an IP address: " + options.host);
  }
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) {
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(options.backlog, error);
  }
  if (error) {
    return FailedError(
        "", fmt::format("cannot listen on {}:{}: {}", options.host, options.port, error.message()));
  }
  state_->Accept();
  state_->Sweep();
  return {};
}

std::uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }
void HttpServer::Run() {
  WakePromptly();
  state_->context.run();
}
void HttpServer::Stop() { state_->context.stop(); }
void HttpServer::StopAccepting() {
  error_code ignored;
  state_->acceptor.close(ignored);
}
std::size_t HttpServer::open_exchanges() const { return state_->exchanges; }
std::size_t HttpServer::connections() const { return state_->connections.size(); }

boost::asio::io_context& HttpServer::context() { return state_->context; }

void HttpServer::Post(std::function<void()> function) {
  asio::post(state_->context, std::move(function));
}

void HttpServer::After(double delay_ms, std::function<void()> function) {
  auto timer = std::make_shared<asio::steady_timer>(state_->context);
  timer->expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double, std::milli>(delay_ms)));
  timer->async_wait([timer, function = std::move(function)](error_code error) {
    if (!error) {
      function();
    }
  });
}

void HttpServer::OnSignal(std::function<void()> callback) {
  state_->on_signal = std::move(callback);
  error_code ignored;
  state_->signals.add(SIGINT, ignored);
  state_->signals.add(SIGTERM, ignored);
  state_->AwaitSignal();
}

}  // namespace dynosim::live
