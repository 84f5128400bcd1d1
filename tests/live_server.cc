// SPDX-License-Identifier: Apache-2.0
#include "live_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <asm-generic/socket.h>
#include <bits/types/struct_timeval.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dynosim::testing {

LiveServer::LiveServer(std::vector<std::string> flags, const std::string& command) {
  flags.insert(flags.begin(), {DYNO_PROGRAM, command});
  if (std::ranges::find(flags, "--http-port") == flags.end()) {
    flags.insert(flags.end(), {"--http-port", "0"});
  }
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) {
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    execv(DYNO_PROGRAM, argv.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
  char c = 0;
  while (read(pipe_, &c, 1) == 1 && c != '\n') {
    output_ += c;
  }
  const std::size_t at = output_.find("http://127.0.0.1:");
  if (at != std::string::npos) {
    port_ = static_cast<std::uint16_t>(std::atoi(output_.c_str() + at + 17));
  }
}

LiveServer::~LiveServer() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
}

void LiveServer::Signal(int number) const { kill(pid_, number); }

int LiveServer::Wait(double timeout_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

HttpConnection::HttpConnection(std::uint16_t port) {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout = {.tv_sec = 20, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic = {};
  static_assert(sizeof generic == sizeof address);
  __builtin_memcpy(&generic, &address, sizeof address);
  if (connect(socket_, &generic, sizeof address) != 0) {
    Close();
  }
}

HttpConnection::~HttpConnection() { Close(); }

void HttpConnection::Close() {
  if (socket_ >= 0) {
    close(std::exchange(socket_, -1));
  }
}

bool HttpConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void HttpConnection::EndSending() const { shutdown(socket_, SHUT_WR); }

bool HttpConnection::Fill() {
  char chunk[16384];
  const ssize_t got = recv(socket_, chunk, sizeof chunk, 0);
  if (got <= 0) {
    return false;
  }
  buffer_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

bool HttpConnection::AtEnd() {
  char c = 0;
  return buffer_.empty() && recv(socket_, &c, 1, 0) <= 0;
}

bool HttpConnection::ReadUntil(std::string_view text, int count) {
  std::size_t at = 0;
  for (int i = 0; i < count; ++i) {
    std::size_t found = buffer_.find(text, at);
    while (found == std::string::npos) {
      if (!Fill()) {
        return false;
      }
      found = buffer_.find(text, at);
    }
    at = found + text.size();
  }
  return true;
}

HttpAnswer HttpConnection::Read(bool head_only) {
  HttpAnswer out;
  std::size_t end = buffer_.find("\r\n\r\n");
  while (end == std::string::npos) {
    if (!Fill()) {
      return out;
    }
    end = buffer_.find("\r\n\r\n");
  }
  out.head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  out.status = std::atoi(out.head.c_str() + 9);
  if (head_only || out.status == 100) {
    return out;
  }
  if (const std::size_t at = out.head.find("content-length: "); at != std::string::npos) {
    const auto size = static_cast<std::size_t>(std::atoll(out.head.c_str() + at + 16));
    while (buffer_.size() < size && Fill()) {
    }
    out.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return out;
  }
  while (true) {
    std::size_t line = buffer_.find("\r\n");
    while (line == std::string::npos) {
      if (!Fill()) {
        out.status = 0;
        return out;
      }
      line = buffer_.find("\r\n");
    }
    const std::size_t size = std::strtoull(buffer_.c_str(), nullptr, 16);
    while (buffer_.size() < line + 2 + size + 2) {
      if (!Fill()) {
        out.status = 0;
        return out;
      }
    }
    out.body += buffer_.substr(line + 2, size);
    buffer_.erase(0, line + 2 + size + 2);
    if (size == 0) {
      return out;
    }
  }
}

std::string HttpText(std::string_view method, std::string_view path, std::string_view body,
                     std::string_view headers) {
  return fmt::format("{} {} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n{}\r\n{}", method, path,
                     body.size(), headers, body);
}

HttpAnswer Get(std::uint16_t port, std::string_view path) {
  HttpConnection connection(port);
  connection.Send(HttpText("GET", path, ""));
  return connection.Read();
}

std::string StreamBody(int first_token, int prompt, int max_tokens) {
  std::string out = R"({"model":"mock","stream":true,"stream_options":{"include_usage":true},)"
                    R"("max_tokens":)" +
                    std::to_string(max_tokens) + R"(,"prompt":[)";
  for (int i = 0; i < prompt; ++i) {
    out += (i > 0 ? "," : "") + std::to_string(first_token + i);
  }
  return out + "]}";
}

HttpAnswer Post(std::uint16_t port, std::string_view path, std::string_view body,
                std::string_view headers) {
  HttpConnection connection(port);
  connection.Send(HttpText("POST", path, body, headers));
  return connection.Read();
}

std::vector<std::string> Events(std::string_view body) {
  std::vector<std::string> out;
  while (!body.empty()) {
    const std::size_t end = body.find("\n\n");
    std::string_view event = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 2);
    const std::size_t data = event.find("data: ");
    out.emplace_back(data == std::string_view::npos ? event : event.substr(data + 6));
  }
  return out;
}

double Metric(std::string_view page, std::string_view series) {
  double sum = 0.0;
  bool found = false;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (line.starts_with(series)) {
      sum += std::strtod(std::string(line.substr(line.rfind(' ') + 1)).c_str(), nullptr);
      found = true;
    }
  }
  return found ? sum : -1.0;
}

bool Becomes(std::uint16_t port, std::string_view series, double value) {
  for (int i = 0; i < 400; ++i) {
    if (Metric(Get(port, "/metrics").body, series) == value) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace dynosim::testing
