// SPDX-License-Identifier: Apache-2.0
// For tests: the program as a server in a process of its own, and a blocking HTTP client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dynosim::testing {

// `dynosim <command> ...` on a free port. Killed at the end unless it has been stopped.
class LiveServer {
 public:
  explicit LiveServer(std::vector<std::string> flags, const std::string& command = "serve");
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;
  ~LiveServer();

  std::uint16_t port() const { return port_; }  // 0: it did not start
  const std::string& output() const { return output_; }
  void Signal(int number) const;
  // Waits for the end and returns the exit code; -1 after `timeout_s`.
  int Wait(double timeout_s = 10.0);

 private:
  int pid_ = -1;
  int pipe_ = -1;
  std::uint16_t port_ = 0;
  std::string output_;
};

struct HttpAnswer {
  int status = 0;  // 0: the connection ended before an answer
  std::string head;
  std::string body;  // without chunk framing
};

// One connection.
class HttpConnection {
 public:
  explicit HttpConnection(std::uint16_t port);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  bool Send(std::string_view bytes);
  HttpAnswer Read(bool head_only = false);
  // Reads until `count` occurrences of `text` have come; false at the end of the connection.
  bool ReadUntil(std::string_view text, int count = 1);
  // The server sees that nothing more comes.
  void EndSending() const;
  // True when the server has closed the connection.
  bool AtEnd();
  void Close();

 private:
  bool Fill();
  int socket_ = -1;
  std::string buffer_;
};

// A streamed text completion with usage; the prompt is so many ids from the first one on.
std::string StreamBody(int first_token, int prompt, int max_tokens);

std::string HttpText(std::string_view method, std::string_view path, std::string_view body,
                     std::string_view headers = "");
HttpAnswer Get(std::uint16_t port, std::string_view path);
HttpAnswer Post(std::uint16_t port, std::string_view path, std::string_view body,
                std::string_view headers = "");

// Payloads of the events of a stream.
std::vector<std::string> Events(std::string_view body);

// Value of a series of a metrics page whose name and labels start with `series`; the sum over all
// that match. -1 when there is none.
double Metric(std::string_view page, std::string_view series);
// Waits up to two seconds until a series of the server has a value.
bool Becomes(std::uint16_t port, std::string_view series, double value);

}  // namespace dynosim::testing
