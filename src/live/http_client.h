// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as a client: to worker processes, and to the discovery store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace boost::asio {
class io_context;
}

namespace dynosim::live {

struct HttpAddress {
  std::string host = "127.0.0.1";  // an IP address
  std::uint16_t port = 0;
  friend bool operator==(const HttpAddress&, const HttpAddress&) = default;
};

// "http://host:port", where the host is an IP address or localhost. `where` is for the error.
Result<HttpAddress> ParseHttpAddress(const std::string& where, const std::string& url);
// Any host; its name is looked up now, which takes time.
Result<HttpAddress> ResolveHttpAddress(const std::string& where, const std::string& url);

struct HttpAsk {
  std::string method = "POST";
  std::string path;
  std::string body;
};

// One exchange after the other on a connection. Belongs to the thread that runs the context.
class HttpClientConnection {
 public:
  struct Callbacks {
    // The body as it comes; may take what it has understood out of it.
    std::function<void(std::string& body)> on_body;
    // The answer is complete (`status`), or the connection failed (0). Called once.
    std::function<void(int status, bool reusable)> on_end;
  };

  static std::shared_ptr<HttpClientConnection> Make(boost::asio::io_context& context);
  HttpClientConnection() = default;
  HttpClientConnection(const HttpClientConnection&) = delete;
  HttpClientConnection& operator=(const HttpClientConnection&) = delete;
  virtual ~HttpClientConnection() = default;

  virtual void Ask(const HttpAddress& address, const HttpAsk& ask, Callbacks callbacks) = 0;
  // No callback follows.
  virtual void Drop() = 0;
};

constexpr double kAnswerWithinMs = 3000.0;

// One exchange on a connection of its own. `done` gets status 0 when there was no answer in time.
void AskHttp(boost::asio::io_context& context, const HttpAddress& address, const HttpAsk& ask,
             std::function<void(int status, const std::string& body)> done,
             double timeout_ms = kAnswerWithinMs);

struct HttpReply {
  int status = 0;  // 0: no answer in time
  std::string body;
};
// The same, and waits for it.
HttpReply AskHttpNow(const HttpAddress& address, const HttpAsk& ask,
                     double timeout_ms = kAnswerWithinMs);

}  // namespace dynosim::live
