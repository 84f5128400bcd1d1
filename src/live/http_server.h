// SPDX-License-Identifier: Apache-2.0
// HttpServer: HTTP/1.1 with keep-alive on one thread. A handler gets each request once its body is
// complete and answers through an Exchange, at once or over time (server-sent events). All calls
// but Post belong to the thread in Run.
//
// A client that goes away is noticed at once, also while its answer is still computed. A slow
// reader has its own buffer; when that is full, its connection is closed. What two programs could
// read as different requests (RFC 9112, 11.2) is refused and the connection closed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace boost::asio {
class io_context;
}

namespace dynosim::live {

inline constexpr std::string_view kJson = "application/json";

struct HttpRequest {
  // When its last byte had been read.
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
  std::string method;
  std::string path;   // without the query
  std::string query;  // without '?'
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // First header of this name (lower case), empty when absent.
  std::string_view Header(std::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The answer to one request. Shared by the handler and the connection; calls after the client has
// gone do nothing.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  // Headers that every answer of this exchange carries; before Respond or BeginStream.
  virtual void AddHeader(std::string name, std::string value) = 0;
  virtual void Respond(int status, std::string_view content_type, std::string_view body) = 0;

  // A body of unknown length. Data goes out with Flush; several appends make one write.
  virtual void BeginStream(int status, std::string_view content_type) = 0;
  virtual void Append(std::string_view data) = 0;
  virtual void Flush() = 0;
  virtual void EndStream() = 0;
  // Closes the connection without an end of the body.
  virtual void Abort() = 0;

  // Called once when the client goes away before the answer is complete.
  virtual void OnGone(std::function<void()> callback) = 0;
  virtual bool gone() const = 0;
  virtual bool started() const = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any free one
  std::uint64_t body_bytes_max = 192ULL << 20;
  std::uint32_t header_bytes_max = 64U << 10;
  std::uint64_t unsent_bytes_max = 16ULL << 20;
  double header_timeout_ms = 30000.0;  // from the first byte of a request to the end of its header
  double body_timeout_ms = 60000.0;    // between two parts of a body
  double idle_timeout_ms = 75000.0;    // between two requests of a connection
  int backlog = 4096;
};

class HttpServer {
 public:
  using Handler = std::function<void(const std::shared_ptr<Exchange>&, HttpRequest&&)>;

  HttpServer(const HttpOptions& options, Handler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // Binds; an error names the address. port() is known afterwards.
  Result<void> Listen();
  std::uint16_t port() const;

  // Serves until Stop.
  void Run();
  void Stop();
  void StopAccepting();
  // Answers in progress.
  std::size_t open_exchanges() const;
  std::size_t connections() const;

  // Runs a function on the serving thread. From any thread.
  void Post(std::function<void()> function);
  void After(double delay_ms, std::function<void()> function);
  // SIGINT and SIGTERM; called for each signal.
  void OnSignal(std::function<void()> callback);
  // For clients that share the thread.
  boost::asio::io_context& context();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The reason phrase of a status.
std::string_view HttpReason(int status);

}  // namespace dynosim::live
