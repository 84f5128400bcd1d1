// SPDX-License-Identifier: Apache-2.0
// Raw load on a live server in this process: how many streamed tokens per second reach clients, and
// how late passes end. Server and clients share the machine, as the figures of docs/benchmarks.md
// say.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/serve.h"
#include "timing/fixed.h"

namespace dynosim {
namespace {

class Server {
 public:
  explicit Server(live::ServeOptions options) {
    std::promise<std::uint16_t> port;
    options.http.port = 0;
    options.on_listening = [&](std::uint16_t bound, std::function<void()> stop) {
      stop_ = std::move(stop);
      port.set_value(bound);
    };
    auto bound = port.get_future();
    thread_ = std::thread([options] { (void)live::Serve(options); });
    port_ = bound.get();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    stop_();
    thread_.join();
  }
  std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_ = 0;
  std::function<void()> stop_;
  std::thread thread_;
};

int Connect(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr generic = {};
  std::memcpy(&generic, &address, sizeof address);
  if (::connect(socket, &generic, sizeof address) != 0) {
    std::perror("connect");
    std::abort();
  }
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return socket;
}

// A closed loop of streams on one thread. It counts events, which are tokens, by their first key.
class Client {
 public:
  Client(std::uint16_t port, int streams, int output_tokens) : epoll_(epoll_create1(0)) {
    const std::string body = fmt::format(
        R"({{"model":"mock","prompt":"a","max_tokens":{},"stream":true}})", output_tokens);
    request_ =
        fmt::format("POST /v1/completions HTTP/1.1\r\nhost: b\r\ncontent-length: {}\r\n\r\n{}",
                    body.size(), body);
    for (int i = 0; i < streams; ++i) {
      streams_.push_back({.socket = Connect(port), .tail = {}});
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.u32 = static_cast<std::uint32_t>(i);
      epoll_ctl(epoll_, EPOLL_CTL_ADD, streams_.back().socket, &event);
      Ask(streams_.back());
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    for (const Stream& stream : streams_) {
      close(stream.socket);
    }
    close(epoll_);
  }

  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t requests() const { return requests_; }

  void RunFor(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::vector<epoll_event> ready(256);
    while (std::chrono::steady_clock::now() < end) {
      const int count = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 50);
      for (int i = 0; i < count; ++i) {
        Read(streams_[ready[static_cast<std::size_t>(i)].data.u32]);
      }
    }
  }

 private:
  struct Stream {
    int socket = -1;
    std::string tail;  // end of the last read, where a mark may have begun
  };

  void Ask(const Stream& stream) const {
    if (send(stream.socket, request_.data(), request_.size(), MSG_NOSIGNAL) < 0) {
      std::perror("send");
      std::abort();
    }
  }

  void Read(Stream& stream) {
    constexpr std::string_view kMark = "data: {";
    constexpr std::string_view kDone = "data: [DONE]";
    const ssize_t got = recv(stream.socket, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      std::fprintf(stderr, "the server closed a stream\n");
      std::abort();
    }
    stream.tail.append(buffer_.data(), static_cast<std::size_t>(got));
    std::string_view text = stream.tail;
    bool done = false;
    while (true) {
      const std::size_t at = text.find("data: ");
      if (at == std::string_view::npos || at + kDone.size() > text.size()) {
        text.remove_prefix(at == std::string_view::npos
                               ? text.size() - std::min<std::size_t>(text.size(), 5)
                               : at);
        break;
      }
      if (text.substr(at).starts_with(kMark)) {
        ++tokens_;
      } else {
        done = true;
        --tokens_;  // the event with the finish reason carries no token
      }
      text.remove_prefix(at + kDone.size());
    }
    stream.tail = std::string(text);
    if (done) {
      ++requests_;
      Ask(stream);
    }
  }

  int epoll_;
  std::string request_;
  std::vector<Stream> streams_;
  std::vector<char> buffer_ = std::vector<char>(1U << 16U);
  std::uint64_t tokens_ = 0;
  std::uint64_t requests_ = 0;
};

// The metrics page of the server.
std::string Page(std::uint16_t port) {
  const int socket = Connect(port);
  constexpr std::string_view kAsk = "GET /metrics HTTP/1.1\r\nhost: b\r\nconnection: close\r\n\r\n";
  std::string out;
  std::vector<char> buffer(1U << 16U);
  if (send(socket, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) > 0) {
    for (ssize_t got = 1; got > 0;) {
      got = recv(socket, buffer.data(), buffer.size(), 0);
      out.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
  }
  close(socket);
  return out;
}

double Value(const std::string& page, const std::string& series) {
  const std::size_t at = page.find("\n" + series);
  return at == std::string::npos ? 0.0 : std::atof(page.c_str() + page.find(' ', at));
}

// Buckets of a histogram with one series: bounds and counts of what is not above them.
std::vector<std::pair<double, double>> Buckets(const std::string& page, std::string_view name) {
  std::vector<std::pair<double, double>> out;
  const std::string start = fmt::format("\n{}_bucket{{", name);
  for (std::size_t at = page.find(start); at != std::string::npos; at = page.find(start, at + 1)) {
    const std::size_t bound = page.find("le=\"", at) + 4;
    out.emplace_back(std::strtod(page.c_str() + bound, nullptr),
                     std::atof(page.c_str() + page.find("} ", at) + 2));
  }
  return out;
}

// Lateness of passes since the last call.
class Lateness {
 public:
  struct Figures {
    double mean_ms = 0.0;
    double p99_ms = 0.0;  // bound of the bucket that has it
  };

  explicit Lateness(std::uint16_t port) : port_(port) { (void)Take(); }
  Figures Take() {
    constexpr std::string_view kName = "dynosim_pass_lateness_seconds";
    const std::string page = Page(port_);
    const double sum = Value(page, std::string(kName) + "_sum");
    const auto buckets = Buckets(page, kName);
    Figures out;
    const double passes =
        buckets.empty() ? 0.0 : buckets.back().second - Before(buckets.size() - 1);
    if (passes > 0.0) {
      out.mean_ms = 1000.0 * (sum - sum_) / passes;
    }
    for (std::size_t i = buckets.size(); i-- > 0;) {
      if (buckets[i].second - Before(i) >= 0.99 * passes) {
        out.p99_ms = 1000.0 * buckets[i].first;
      }
    }
    sum_ = sum;
    before_ = buckets;
    return out;
  }

 private:
  double Before(std::size_t place) const {
    return place < before_.size() ? before_[place].second : 0.0;
  }
  std::uint16_t port_;
  double sum_ = 0.0;
  std::vector<std::pair<double, double>> before_;
};

// CPU time of the whole process: server and clients.
double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMegabytes() {
  long pages = 0;
  long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) {
      resident = 0;
    }
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

live::ServeOptions Options(double prefill_ms, double decode_ms, std::uint32_t workers) {
  live::ServeOptions options;
  options.worker.engine.timing = std::make_shared<timing::FixedTiming>(prefill_ms, decode_ms);
  options.worker.engine.max_num_seqs = 8192;
  options.worker.workers = workers;
  return options;
}

// range(0): streams; range(1): decode time of a pass in microseconds.
void StreamedTokens(benchmark::State& state) {
  const Server server(Options(0.0, static_cast<double>(state.range(1)) / 1000.0, 1));
  Client client(server.port(), static_cast<int>(state.range(0)), 128);
  client.RunFor(0.5);
  Lateness lateness(server.port());
  const std::uint64_t before = client.tokens();
  const double cpu = CpuSeconds();
  double seconds = 0.0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    client.RunFor(2.0);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["tokens_per_s"] = static_cast<double>(client.tokens() - before) / seconds;
  // What a core can do, also on a machine that has other work.
  state.counters["tokens_per_cpu_s"] =
      static_cast<double>(client.tokens() - before) / (CpuSeconds() - cpu);
  const Lateness::Figures late = lateness.Take();
  state.counters["lateness_ms"] = late.mean_ms;
  state.counters["lateness_p99_ms"] = late.p99_ms;
}
BENCHMARK(StreamedTokens)
    ->Args({64, 0})
    ->Args({64, 500})
    ->Args({64, 5000})
    ->Args({1, 5000})
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// range(0): streams that stay open, with a token every 100 ms. Memory is that of server and
// clients.
void OpenStreams(benchmark::State& state) {
  const Server server(Options(0.0, 100.0, 4));
  Client client(server.port(), static_cast<int>(state.range(0)), 10000);
  // The last stream has opened long before this many tokens have come.
  while (client.tokens() < 20 * static_cast<std::uint64_t>(state.range(0))) {
    client.RunFor(0.5);
  }
  const double before_mb = ResidentMegabytes();
  const std::uint64_t tokens = client.tokens();
  double seconds = 0.0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    client.RunFor(5.0);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["tokens_per_s"] = static_cast<double>(client.tokens() - tokens) / seconds;
  state.counters["memory_mb"] = before_mb;
  state.counters["growth_mb"] = ResidentMegabytes() - before_mb;
}
BENCHMARK(OpenStreams)->Arg(5000)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dynosim
